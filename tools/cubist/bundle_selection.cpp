#include "bundle_selection.h"

#include <algorithm>
#include <unordered_set>

#include "base/file.h"
#include "manifest/parse.h"
#include "manifest_names.h"
#include "runtime/trusted_manifest.h"
#include "set_items.h"
#include "trust/signed_file.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

/// Asks whether a record is one that --kernel means, and remembers which of them were found.
class NamedKernels {
 public:
  explicit NamedKernels(const std::vector<std::string>& kernels) : kernels_(kernels) {}

  bool means(const KernelRecord& record) {
    bool found = false;
    for (const std::string& kernel : kernels_) {
      const auto digest = Sha256Digest::parse(kernel);
      if (digest ? record.sha256 != *digest : record.name != kernel) continue;
      found = true;
      found_.insert(kernel);
    }
    return found;
  }

  Status all_found() const {
    for (const std::string& kernel : kernels_) {
      if (found_.contains(kernel)) continue;
      return fail(StatusCode::kNotFound,
                  "no kernel '{}' in these manifests; 'cubist list --name \"*PART*\"' finds names",
                  kernel);
    }
    return {};
  }

 private:
  const std::vector<std::string>& kernels_;
  std::unordered_set<std::string> found_;
};

Result<SelectedManifest> open_selected(const std::string& name) {
  CUBIST_ASSIGN_OR_RETURN(const NamedManifest named, find_manifest(name));
  CUBIST_ASSIGN_OR_RETURN(trust::Trust * trust, trust_of_user());
  SelectedManifest selected;
  selected.path = named.path;
  CUBIST_ASSIGN_OR_RETURN(selected.text, read_text_file(named.path, kMaxManifestBytes));
  CUBIST_RETURN_IF_ERROR(check_pin(named, selected.text));
  CUBIST_ASSIGN_OR_RETURN(auto opened,
                          runtime::parse_trusted_manifest(selected.text, named.path, *trust));
  CUBIST_ASSIGN_OR_RETURN(selected.signature, trust::read_signature_of(named.path));
  selected.manifest = std::make_unique<Manifest>(std::move(opened.manifest));
  return selected;
}

/// What is asked for, before filters.
Status add_items(const BundleSelection& selection, const workingset::SetFile* set,
                 NamedKernels& named, SelectedManifest& selected) {
  const bool everything = selection.kernels.empty() && set == nullptr;
  for (const Pack& pack : selected.manifest->packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      if (everything || named.means(kernel)) selected.items.push_back({&pack, &kernel});
    }
  }
  if (set == nullptr) return {};
  CUBIST_ASSIGN_OR_RETURN(const auto found,
                          find_set_items(*set, selection.working_set, *selected.manifest));
  selected.items.insert(selected.items.end(), found.begin(), found.end());
  return {};
}

/// Less what filters leave out; each kernel once.
void narrow(const KernelFilter& filter, SelectedManifest& selected) {
  std::unordered_set<Sha256Digest> seen;
  const auto unwanted = [&](const FetchItem& item) {
    return !matches(filter, item.pack->family, *item.record) ||
           !seen.insert(item.record->sha256).second;
  };
  auto& items = selected.items;
  items.erase(std::remove_if(items.begin(), items.end(), unwanted), items.end());
}

Status check_revoked(const SelectedManifest& selected) {
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  for (const FetchItem& item : selected.items) {
    const Status allowed = revoked->check(item.record->sha256, item.record->name);
    if (allowed) continue;
    return fail(allowed.error().code(),
                "{}. No bundle was made; choose kernels without it (--kernel, --working-set), or a "
                "newer manifest",
                allowed.error().message());
  }
  return {};
}

Status check_asked(const BundleSelection& selection, const KernelFilter& filter) {
  const bool some = !selection.kernels.empty() || !selection.working_set.empty();
  if (selection.all && (some || !filter.asks_nothing())) {
    return fail(StatusCode::kInvalidArgument,
                "--all is every kernel; it does not go with --kernel, --working-set or filters");
  }
  if (some || selection.all || !filter.asks_nothing()) return {};
  return fail(StatusCode::kInvalidArgument,
              "what shall be in the bundle? Give --kernel, --working-set, filters such as --arch, "
              "or --all");
}

}  // namespace

Result<std::vector<SelectedManifest>> select_for_bundle(const BundleSelection& selection) {
  CUBIST_ASSIGN_OR_RETURN(const KernelFilter filter, read_filter(selection.filter));
  CUBIST_RETURN_IF_ERROR(check_asked(selection, filter));
  std::optional<workingset::SetFile> set;
  if (!selection.working_set.empty()) {
    CUBIST_ASSIGN_OR_RETURN(set, workingset::load_set(selection.working_set));
  }
  const std::vector<std::string> names =
      selection.manifests.empty() && set ? set->manifests : selection.manifests;
  if (names.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "--manifest is required: a file, or the name of a manifest");
  }
  NamedKernels named(selection.kernels);
  std::vector<SelectedManifest> manifests;
  for (const std::string& name : names) {
    CUBIST_ASSIGN_OR_RETURN(SelectedManifest selected, open_selected(name));
    CUBIST_RETURN_IF_ERROR(add_items(selection, set ? &*set : nullptr, named, selected));
    narrow(filter, selected);
    CUBIST_RETURN_IF_ERROR(check_revoked(selected));
    if (!selected.items.empty()) manifests.push_back(std::move(selected));
  }
  CUBIST_RETURN_IF_ERROR(named.all_found());
  if (manifests.empty()) {
    return fail(StatusCode::kNotFound, "no kernel passes these filters; nothing was written");
  }
  return manifests;
}

}  // namespace cubist::tools
