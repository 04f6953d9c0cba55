#include "manifest/merge.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "manifest/validate.h"

namespace cubist {
namespace {

bool same_kind(const Pack& a, const Pack& b) {
  return a.name == b.name && a.version == b.version && a.license == b.license &&
         a.family == b.family && a.revision == b.revision && a.param_layout == b.param_layout;
}

class Merger {
 public:
  void add(Pack pack) {
    const auto same = std::find_if(result_.manifest.packs.begin(), result_.manifest.packs.end(),
                                   [&](const Pack& other) { return same_kind(other, pack); });
    std::vector<KernelRecord> kernels = std::exchange(pack.kernels, {});
    if (same == result_.manifest.packs.end()) {
      if (name_is_taken(pack.name) && !pack.version.empty()) pack.name += "-" + pack.version;
      result_.manifest.packs.push_back(std::move(pack));
      add_kernels(result_.manifest.packs.back(), std::move(kernels));
      return;
    }
    // What is said of a pack holds for all of its kernels.
    same->min_driver = std::min(same->min_driver, pack.min_driver);
    for (Source& source : pack.sources) {
      if (std::find(same->sources.begin(), same->sources.end(), source) == same->sources.end()) {
        same->sources.push_back(std::move(source));
      }
    }
    add_kernels(*same, std::move(kernels));
  }

  MergedManifest take() { return std::move(result_); }
  Manifest& manifest() { return result_.manifest; }

 private:
  bool name_is_taken(const std::string& name) const {
    const std::vector<Pack>& packs = result_.manifest.packs;
    return std::any_of(packs.begin(), packs.end(), [&](const Pack& p) { return p.name == name; });
  }

  void add_kernels(Pack& pack, std::vector<KernelRecord> kernels) {
    for (KernelRecord& record : kernels) {
      std::vector<KernelTraits>& seen = seen_[record.sha256];
      if (std::find(seen.begin(), seen.end(), record.traits) != seen.end()) {
        ++result_.dropped;
        continue;
      }
      seen.push_back(record.traits);
      pack.kernels.push_back(std::move(record));
    }
  }

  MergedManifest result_;
  std::unordered_map<Sha256Digest, std::vector<KernelTraits>> seen_;
};

}  // namespace

void resolve_locations(Manifest& manifest) {
  if (manifest.folder.empty()) return;
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(manifest.folder, error);
  if (error) folder = manifest.folder;
  for (Pack& pack : manifest.packs) {
    for (Source& source : pack.sources) {
      const bool is_path =
          source.kind == Source::Kind::kFolder ||
          (source.kind == Source::Kind::kZip && source.location.find("://") == std::string::npos);
      if (!is_path || source.location.front() == '/') continue;
      source.location = (folder / source.location).lexically_normal().string();
    }
  }
  manifest.folder.clear();
}

Result<MergedManifest> merge_manifests(std::span<const Manifest> manifests,
                                       const std::string& name) {
  Merger merger;
  merger.manifest().name = name;
  for (Manifest manifest : manifests) {
    resolve_locations(manifest);
    std::string& description = merger.manifest().description;
    description += (description.empty() ? "" : "; ") + manifest.name;
    for (Pack& pack : manifest.packs) merger.add(std::move(pack));
  }
  MergedManifest merged = merger.take();
  merged.manifest.description = "merged from " + merged.manifest.description;
  CUBIST_RETURN_IF_ERROR(validate_manifest(merged.manifest, "the merged manifest"));
  return merged;
}

}  // namespace cubist
