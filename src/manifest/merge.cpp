#include "manifest/merge.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "manifest/validate.h"
#include "model/cuda_version.h"

namespace cubist {
namespace {

bool same_release(const Pack& a, const Pack& b) {
  return a.name == b.name && a.version == b.version && a.license == b.license &&
         a.family == b.family && a.revision == b.revision && a.param_layout == b.param_layout;
}

/// Fields but name and version in which packs are no one release: "license ('MIT' and 'BSD')".
std::string differences(const Pack& a, const Pack& b) {
  std::string text;
  const auto note = [&](std::string_view field, std::string_view one, std::string_view other) {
    if (one == other) return;
    text += fmt::format("{}{} ('{}' and '{}')", text.empty() ? "" : ", ", field, one, other);
  };
  note("license", a.license, b.license);
  note("family", to_string(a.family), to_string(b.family));
  note("revision", to_string(a.revision), to_string(b.revision));
  note("param_layout", to_string(a.param_layout), to_string(b.param_layout));
  return text;
}

class Merger {
 public:
  /// The same bytes need the same driver, whoever says so: the higher word counts.
  explicit Merger(std::span<const Manifest> manifests) {
    for (const Manifest& manifest : manifests) {
      for (const Pack& pack : manifest.packs) {
        for (const KernelRecord& record : pack.kernels) {
          std::int32_t& need = min_driver_[record.sha256];
          need = std::max(need, pack.min_driver);
        }
      }
    }
  }

  Status add(Pack pack) {
    CUBIST_RETURN_IF_ERROR(refuse_namesake(pack));
    const std::vector<KernelRecord> kernels = std::exchange(pack.kernels, {});
    Release& release = release_of(pack);
    if (kernels.empty()) pack_for(release, pack.min_driver);
    for (const KernelRecord& record : kernels) {
      CUBIST_RETURN_IF_ERROR(claim_path(release, record));
      std::vector<KernelTraits>& seen = seen_[record.sha256];
      if (std::find(seen.begin(), seen.end(), record.traits) != seen.end()) {
        ++result_.dropped;
        continue;
      }
      seen.push_back(record.traits);
      pack_for(release, min_driver_[record.sha256]).kernels.push_back(record);
    }
    return {};
  }

  MergedManifest take() {
    for (const Release& release : releases_) {
      for (const std::size_t i : release.packs) {
        result_.manifest.packs[i].sources = release.head.sources;
      }
    }
    return std::move(result_);
  }
  Manifest& manifest() { return result_.manifest; }

 private:
  /// Packs that differ in what they need of the driver alone, which is said of a whole pack.
  struct Release {
    Pack head;                       ///< without kernels; the sources of all
    std::vector<std::size_t> packs;  ///< in the result
    std::unordered_map<std::string, Sha256Digest> paths;
  };

  /// Packs that are told apart by nothing a name is made from, and yet are not one release.
  Status refuse_namesake(const Pack& pack) const {
    for (const Release& other : releases_) {
      if (other.head.name != pack.name || other.head.version != pack.version) continue;
      if (same_release(other.head, pack)) return {};
      return fail(StatusCode::kManifestInvalid,
                  "the merged manifest: two packs are called '{}', version '{}', but differ in {}; "
                  "give one of them another name or version where it is from, then merge",
                  pack.name, pack.version, differences(other.head, pack));
    }
    return {};
  }

  Release& release_of(const Pack& pack) {
    const auto same = std::find_if(releases_.begin(), releases_.end(), [&](const Release& other) {
      return same_release(other.head, pack);
    });
    if (same == releases_.end()) {
      releases_.push_back({pack, {}, {}});
      return releases_.back();
    }
    std::vector<Source>& sources = same->head.sources;
    for (const Source& source : pack.sources) {
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) {
        sources.push_back(source);
      }
    }
    return *same;
  }

  Pack& pack_for(Release& release, std::int32_t min_driver) {
    std::vector<Pack>& packs = result_.manifest.packs;
    for (const std::size_t i : release.packs) {
      if (packs[i].min_driver == min_driver) return packs[i];
    }
    Pack pack = release.head;
    pack.min_driver = min_driver;
    if (!release.packs.empty()) {
      pack.name = fmt::format("{}-driver-{}", packs[release.packs.front()].name,
                              min_driver == 0 ? "any" : cuda_version_text(min_driver));
    } else if (name_is_taken(pack.name) && !pack.version.empty()) {
      pack.name += "-" + pack.version;
    }
    release.packs.push_back(packs.size());
    packs.push_back(std::move(pack));
    return packs.back();
  }

  /// The packs of a release share their sources, so a path means one artifact in all of them.
  static Status claim_path(Release& release, const KernelRecord& record) {
    const auto [at, is_new] = release.paths.try_emplace(record.file(), record.sha256);
    if (is_new || at->second == record.sha256) return {};
    return fail(StatusCode::kManifestInvalid,
                "the merged manifest: '{}' of pack '{}' is claimed by two kernels, '{}' with "
                "another sha256 than the other ({} and {}); give one of the packs another version",
                record.file(), release.head.name, record.name, record.sha256.hex(),
                at->second.hex());
  }

  bool name_is_taken(const std::string& name) const {
    const std::vector<Pack>& packs = result_.manifest.packs;
    return std::any_of(packs.begin(), packs.end(), [&](const Pack& p) { return p.name == name; });
  }

  MergedManifest result_;
  std::vector<Release> releases_;
  std::unordered_map<Sha256Digest, std::int32_t> min_driver_;
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
  Merger merger(manifests);
  merger.manifest().name = name;
  for (Manifest manifest : manifests) {
    resolve_locations(manifest);
    std::string& description = merger.manifest().description;
    description += (description.empty() ? "" : "; ") + manifest.name;
    for (Pack& pack : manifest.packs) CUBIST_RETURN_IF_ERROR(merger.add(std::move(pack)));
  }
  MergedManifest merged = merger.take();
  merged.manifest.description = "merged from " + merged.manifest.description;
  CUBIST_RETURN_IF_ERROR(validate_manifest(merged.manifest, "the merged manifest"));
  return merged;
}

}  // namespace cubist
