#include "bundle/kept_bundles.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "archive/zip.h"
#include "bundle/bundle.h"
#include "registry/entry_file.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"
#include "registry/stored_bundle.h"

namespace cubist::bundle {
namespace {

constexpr std::uint64_t kMaxManifestFileBytes = 512ULL << 20;

std::vector<Kernel> kernels_served_by(const Description& description) {
  return description.kernels;
}

std::vector<Kernel> kernels_served_by(const StoredBundle& bundle) {
  std::vector<Kernel> served;
  served.reserve(bundle.kernels().size());
  for (const StoredBundle::Kernel& kernel : bundle.kernels()) {
    served.push_back({kernel.sha256, kernel.size_bytes});
  }
  return served;
}

Status check_identity(const KeptBundle& kept, const Bundle& opened) {
  if (opened.identity() == kept.identity) return {};
  return fail(
      StatusCode::kIntegrity,
      "'{}' is named after the bundle {}, but holds {}; install that bundle anew, and remove "
      "this file with 'cubist bundle remove {}'",
      kept.path, kept.identity.hex(), opened.identity().hex(), kept.path);
}

/// What is in a file that is open, or why nobody can say.
void look_into(UniqueFd fd, KeptBundle& kept) {
  auto file = file_access(kept.path, std::move(fd));
  if (!file) {
    kept.error = std::move(file.error());
    kept.served_unknown = kept.error->code() != StatusCode::kIntegrity;
    return;
  }
  const auto opened = Bundle::open(*file);
  if (opened) {
    kept.served = kernels_served_by(opened->description());
    if (Status name = check_identity(kept, *opened); !name) {
      kept.error = std::move(name.error());
    } else {
      kept.description = opened->description();
    }
    return;
  }
  kept.error = opened.error();
  const auto directory = StoredBundle::read_directory(*file);
  if (directory) kept.served = kernels_served_by(**directory);
  kept.served_unknown = !directory && directory.error().code() != StatusCode::kIntegrity;
}

/// Nothing where it is gone by now.
std::optional<KeptBundle> look_at(const std::string& layer, const std::string& name) {
  KeptBundle kept;
  kept.layer = layer;
  kept.path = fmt::format("{}/{}", bundle_folder(layer), name);
  kept.identity = Sha256Digest::parse(name.substr(0, name.find('.'))).value_or(Sha256Digest{});
  const auto no_file = [&] {
    kept.error = Error(StatusCode::kIntegrity,
                       fmt::format("'{}' is no regular file, so no bundle; remove it", kept.path));
    return kept;
  };
  UniqueFd fd = open_in_store(kept.path, kStoreFileDepth, O_RDONLY);
  if (!fd.valid()) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) return no_file();
    kept.error = store_read_error("cannot open", kept.path, errno);
    kept.served_unknown = true;
    return kept;
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return no_file();
    kept.file_bytes = static_cast<std::uint64_t>(info.st_size);
    kept.used_at = info.st_mtim.tv_sec;
  }
  look_into(std::move(fd), kept);
  return kept;
}

bool serves(const KeptBundle& bundle, const Sha256Digest& kernel) {
  const auto at = std::lower_bound(
      bundle.served.begin(), bundle.served.end(), kernel,
      [](const Kernel& one, const Sha256Digest& digest) { return one.sha256 < digest; });
  return at != bundle.served.end() && at->sha256 == kernel;
}

std::size_t count_elsewhere(const Store& store, const KeptBundle& one,
                            const std::vector<KeptBundle>& all) {
  const auto is_elsewhere = [&](const Kernel& kernel) {
    for (const std::string& layer : store.layers()) {
      const auto entry = open_entry(entry_path(layer, kernel.sha256));
      if (entry && *entry && (*entry)->size_bytes == kernel.size_bytes) return true;
    }
    return std::any_of(all.begin(), all.end(), [&](const KeptBundle& other) {
      return other.path != one.path && serves(other, kernel.sha256);
    });
  };
  return static_cast<std::size_t>(
      std::count_if(one.served.begin(), one.served.end(), is_elsewhere));
}

bool brings_manifest(const KeptBundle& bundle, const Sha256Digest& text) {
  return bundle.description &&
         std::any_of(bundle.description->manifests.begin(), bundle.description->manifests.end(),
                     [&](const ManifestPart& part) { return part.text.sha256 == text; });
}

/// Manifests in the store whose text is this bundle's and no other's, whatever they are called.
Result<std::vector<std::string>> manifests_of(const Store& store, const KeptBundle& one,
                                              const std::vector<KeptBundle>& all) {
  std::vector<std::string> paths;
  const std::string folder = installed_manifest_folder(store.root());
  CUBIST_ASSIGN_OR_RETURN(const auto names, names_in_store_folder(folder, 1));
  for (const std::string& name : names) {
    if (!name.ends_with(".json")) continue;
    std::string path = fmt::format("{}/{}", folder, name);
    const auto bytes = read_in_store(path, kStoreFileDepth, kMaxManifestFileBytes);
    if (!bytes || !brings_manifest(one, sha256(*bytes))) continue;
    const bool shared = std::any_of(all.begin(), all.end(), [&](const KeptBundle& other) {
      return other.path != one.path && brings_manifest(other, sha256(*bytes));
    });
    if (!shared) paths.push_back(std::move(path));
  }
  return paths;
}

Status check_pins(const KeptBundle& one, const std::unordered_set<Sha256Digest>& pinned) {
  if (pinned.empty()) return {};
  if (one.served_unknown) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' stays: it cannot be looked into, so it may hold what --pin keeps ({})",
                one.path, one.error->message());
  }
  for (const Sha256Digest& digest : pinned) {
    if (!serves(one, digest)) continue;
    return fail(
        StatusCode::kInvalidArgument,
        "'{}' stays: it holds {}, which --pin keeps; leave that pin out, or keep the bundle",
        one.path, digest.hex());
  }
  return {};
}

Status remove_file(const std::string& path) {
  if (unlink_in_store(path, kStoreFileDepth) == 0 || errno == ENOENT) return {};
  return tl::unexpected<Error>(store_write_error("cannot remove", path, errno));
}

}  // namespace

Result<std::vector<KeptBundle>> list_kept_bundles(const Store& store) {
  std::vector<KeptBundle> kept;
  for (const std::string& layer : store.layers()) {
    CUBIST_ASSIGN_OR_RETURN(const auto names, names_in_store_folder(bundle_folder(layer), 1));
    for (const std::string& name : names) {
      if (!is_bundle_name(name)) continue;
      if (auto one = look_at(layer, name)) kept.push_back(std::move(*one));
    }
  }
  return kept;
}

Result<RemovedBundle> remove_kept_bundle(const Store& store, const KeptBundle& one,
                                         const std::vector<KeptBundle>& all,
                                         const RemoveOptions& options) {
  if (one.layer != store.root()) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' lies in a layer that is only read here; remove it there, with --store {}",
                one.path, one.layer);
  }
  CUBIST_RETURN_IF_ERROR(check_pins(one, options.pinned));
  const UniqueFd fd = open_in_store(one.path, kStoreFileDepth, O_RDONLY);
  // Where locks do not work nobody can say; its readers have it open anyway.
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return fail(StatusCode::kIo,
                "'{}' is in use: a running program serves kernels from it; end that first, or let "
                "'cubist gc' take the bundle later",
                one.path);
  }
  RemovedBundle removed;
  removed.kernels_elsewhere = count_elsewhere(store, one, all);
  if (options.manifests) {
    CUBIST_ASSIGN_OR_RETURN(removed.manifests, manifests_of(store, one, all));
  }
  if (options.dry_run) return removed;
  for (const std::string& path : removed.manifests) {
    CUBIST_RETURN_IF_ERROR(remove_file(path));
    CUBIST_RETURN_IF_ERROR(remove_file(path + ".minisig"));
  }
  CUBIST_RETURN_IF_ERROR(remove_file(one.path));
  return removed;
}

}  // namespace cubist::bundle
