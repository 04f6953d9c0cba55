#include "registry/store_status.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <unordered_set>

#include "registry/entry_file.h"
#include "registry/store_check.h"

namespace cubist {
namespace {

/// The file systems that matter to a store (linux/magic.h, and those that are not in it).
std::string file_system_name(std::uint64_t magic) {
  switch (magic) {
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlay";
    case 0x6969:
      return "nfs";
    case 0x0BD00BD0:
      return "lustre";
    case 0x47504653:
      return "gpfs";
    case 0x65735546:
      return "fuse";
    case 0x2FC12FC1:
      return "zfs";
    default:
      return fmt::format("0x{:x}", magic);
  }
}

std::size_t count_files(const std::string& folder) {
  std::size_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

Status count_entries(LayerStatus& status) {
  std::vector<std::string> strangers;
  CUBIST_ASSIGN_OR_RETURN(const std::vector<EntryToCheck> entries,
                          list_entries_of_layer(status.root, strangers));
  for (const EntryToCheck& entry : entries) {
    struct stat info {};
    if (::lstat(entry.path.c_str(), &info) != 0) continue;
    ++status.entries;
    status.bytes += static_cast<std::uint64_t>(info.st_size);
  }
  return {};
}

Status count_bundles(const Store& store, LayerStatus& status) {
  CUBIST_ASSIGN_OR_RETURN(const auto shelf, store.bundles(status.root));
  status.bundles = shelf->bundles.size();
  for (const auto& bundle : shelf->bundles) {
    status.bundled_kernels += bundle->kernels().size();
    status.bundle_bytes += bundle->file_bytes();
  }
  return {};
}

LayerStatus status_of(const Store& store, const std::string& root) {
  LayerStatus status;
  status.root = root;
  struct stat info {};
  if (::stat(root.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) {
      status.error = store_read_error("cannot look at the store", root, errno);
    }
    return status;
  }
  status.exists = true;
  status.writable = ::access(root.c_str(), W_OK | X_OK) == 0;
  struct statvfs space {};
  if (::statvfs(root.c_str(), &space) == 0) {
    status.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  }
  struct statfs kind {};
  if (::statfs(root.c_str(), &kind) == 0) {
    status.file_system = file_system_name(static_cast<std::uint32_t>(kind.f_type));
  }
  status.unfinished = count_files(root + "/tmp");
  status.directories = count_files(root + "/index");
  Status counted = count_entries(status);
  if (counted) counted = count_bundles(store, status);
  if (!counted) status.error = std::move(counted.error());
  return status;
}

}  // namespace

std::vector<LayerStatus> layer_status(const Store& store) {
  std::vector<LayerStatus> all;
  for (const std::string& root : store.layers()) all.push_back(status_of(store, root));
  return all;
}

Result<Coverage> coverage(const Store& store, std::span<const KernelRecord* const> records) {
  Coverage found;
  found.served.resize(store.layers().size());
  std::unordered_set<Sha256Digest> seen;
  for (const KernelRecord* record : records) {
    if (!seen.insert(record->sha256).second) continue;
    CUBIST_ASSIGN_OR_RETURN(const std::optional<Store::Location> place, store.locate(*record));
    if (place) {
      ++found.served[place->layer];
      continue;
    }
    found.missing.push_back(record);
    found.missing_bytes += record->size_bytes;
  }
  return found;
}

}  // namespace cubist
