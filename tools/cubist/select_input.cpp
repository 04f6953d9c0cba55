#include "select_input.h"

#include <algorithm>

#include "manifest_names.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

Result<std::vector<selector::BarredKernel>> parse_barred(const std::vector<std::string>& texts) {
  std::vector<selector::BarredKernel> barred;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const auto digest = Sha256Digest::parse(std::string_view(text).substr(0, equals));
    if (!digest) {
      return fail(StatusCode::kInvalidArgument,
                  "--bar '{}': expected a sha256 of 64 hexadecimal digits, then perhaps =REASON",
                  text);
    }
    if (equals != std::string::npos && equals + 1 == text.size()) {
      return fail(StatusCode::kInvalidArgument,
                  "--bar '{}': the reason is empty; write one after =, or leave = out", text);
    }
    if (std::any_of(barred.begin(), barred.end(),
                    [&](const auto& other) { return other.sha256 == *digest; })) {
      return fail(StatusCode::kInvalidArgument, "--bar {}: this kernel is barred twice",
                  digest->hex());
    }
    barred.push_back({*digest, equals == std::string::npos ? "barred on the command line"
                                                           : text.substr(equals + 1)});
  }
  return barred;
}

/// A hash with a slip in it must not leave its kernel in use.
Status check_barred(const std::vector<selector::BarredKernel>& barred,
                    const std::vector<selector::PackView>& packs) {
  for (const selector::BarredKernel& bar : barred) {
    const bool known = std::any_of(packs.begin(), packs.end(), [&](const auto& pack) {
      return std::any_of(pack.kernels.begin(), pack.kernels.end(),
                         [&](const KernelRecord& kernel) { return kernel.sha256 == bar.sha256; });
    });
    if (known) continue;
    return fail(StatusCode::kInvalidArgument,
                "--bar {}: no kernel of the manifest has this sha256 ('cubist list' shows them)",
                bar.sha256.hex());
  }
  return {};
}

/// One manifest under two names would have every kernel compete with itself.
Status check_distinct(const std::vector<Manifest>& opened, const Manifest& next,
                      const std::string& name) {
  for (const Manifest& manifest : opened) {
    if (manifest.name != next.name || manifest.packs != next.packs) continue;
    return fail(StatusCode::kInvalidArgument,
                "--manifest {}: manifest '{}' is given twice; leave one of them out", name,
                next.name);
  }
  return {};
}

}  // namespace

std::size_t OpenedManifests::num_kernels() const {
  std::size_t count = 0;
  for (const Manifest& manifest : manifests) {
    for (const Pack& pack : manifest.packs) count += pack.kernels.size();
  }
  return count;
}

Result<OpenedManifests> open_manifests(const std::vector<std::string>& names,
                                       const std::vector<std::string>& barred) {
  OpenedManifests opened;
  CUBIST_ASSIGN_OR_RETURN(auto barred_kernels, parse_barred(barred));
  for (const std::string& name : names) {
    CUBIST_ASSIGN_OR_RETURN(Manifest manifest, open_manifest(name));
    CUBIST_RETURN_IF_ERROR(check_distinct(opened.manifests, manifest, name));
    opened.manifests.push_back(std::move(manifest));
  }
  std::vector<selector::PackView> views;
  for (const Manifest& manifest : opened.manifests) {
    for (const Pack& pack : manifest.packs) {
      views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
    }
  }
  CUBIST_RETURN_IF_ERROR(check_barred(barred_kernels, views));
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  for (selector::BarredKernel& bar : runtime::barred_kernels(*revoked)) {
    barred_kernels.push_back(std::move(bar));
  }
  CUBIST_ASSIGN_OR_RETURN(opened.table, selector::KernelTable::build(views, barred_kernels));
  return opened;
}

}  // namespace cubist::tools
