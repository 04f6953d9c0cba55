#include "set_items.h"

#include <algorithm>
#include <unordered_map>

#include "document/json_text.h"
#include "manifest_names.h"

namespace cubist::tools {
namespace {

using workingset::SetEntry;
using workingset::SetFile;

/// Records by digest. Packs may share one; a set's entry says whose it means.
using RecordsByDigest = std::unordered_multimap<Sha256Digest, FetchItem>;

const FetchItem* find_record(const RecordsByDigest& records, const SetEntry& entry) {
  const auto [first, last] = records.equal_range(entry.sha256);
  const FetchItem* found = nullptr;
  for (auto at = first; at != last; ++at) {
    if (found == nullptr || at->second.pack->name == entry.pack) found = &at->second;
  }
  return found;
}

Result<std::string> manifest_of_set(const SetFile& set, const std::string& set_path) {
  if (set.manifests.size() == 1) return set.manifests.front();
  return fail(StatusCode::kInvalidArgument,
              "{}: the set names {} manifests{}{}; say which with --manifest, one run for each",
              set_path, set.manifests.size(), set.manifests.empty() ? "" : ": ",
              joined(set.manifests));
}

}  // namespace

Result<std::vector<FetchItem>> find_set_items(const SetFile& set, const std::string& set_path,
                                              const Manifest& manifest) {
  RecordsByDigest records;
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      records.insert({kernel.sha256, FetchItem{&pack, &kernel}});
    }
  }
  std::vector<FetchItem> items;
  for (const SetEntry& entry : set.kernels) {
    const FetchItem* found = find_record(records, entry);
    if (found == nullptr && set.manifests.size() > 1) continue;
    if (found == nullptr) {
      return fail(StatusCode::kNotFound,
                  "{}: kernel {} with sha256 {} is not in manifest '{}' (the set is from {}); make "
                  "the set from this manifest with 'cubist working-set'",
                  set_path, in_quotes(entry.name), entry.sha256.hex(), manifest.name,
                  set.manifests.empty() ? "no named one" : in_quotes(set.manifests.front()));
    }
    if (found->record->size_bytes != entry.size_bytes) {
      return fail(StatusCode::kIntegrity,
                  "{}: kernel {} has {} bytes here and {} in manifest '{}', under one sha256; one "
                  "of the two files was changed by hand",
                  set_path, in_quotes(entry.name), entry.size_bytes, found->record->size_bytes,
                  manifest.name);
    }
    items.push_back(*found);
  }
  if (items.empty()) {
    return fail(StatusCode::kNotFound, "{}: none of its {} kernels is in manifest '{}'", set_path,
                set.kernels.size(), manifest.name);
  }
  return items;
}

Result<Manifest> open_manifest_of_set(const std::string& name, const SetFile& set,
                                      const std::string& set_path) {
  if (!name.empty()) return open_manifest(name);
  CUBIST_ASSIGN_OR_RETURN(const std::string own, manifest_of_set(set, set_path));
  auto manifest = open_manifest(own);
  if (!manifest) return forward_error(manifest, "the manifest of " + set_path);
  return manifest;
}

}  // namespace cubist::tools
