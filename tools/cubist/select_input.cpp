#include "select_input.h"

#include "manifest_names.h"

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
    barred.push_back({*digest, equals == std::string::npos ? "barred on the command line"
                                                           : text.substr(equals + 1)});
  }
  return barred;
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
  CUBIST_ASSIGN_OR_RETURN(const auto barred_kernels, parse_barred(barred));
  for (const std::string& name : names) {
    CUBIST_ASSIGN_OR_RETURN(Manifest manifest, open_manifest(name));
    opened.manifests.push_back(std::move(manifest));
  }
  std::vector<selector::PackView> views;
  for (const Manifest& manifest : opened.manifests) {
    for (const Pack& pack : manifest.packs) {
      views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
    }
  }
  CUBIST_ASSIGN_OR_RETURN(opened.table, selector::KernelTable::build(views, barred_kernels));
  return opened;
}

}  // namespace cubist::tools
