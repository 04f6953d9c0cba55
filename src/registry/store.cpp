#include "registry/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/log.h"
#include "registry/counters.h"
#include "registry/entry_file.h"
#include "trust/folder_check.h"
#include "trust/settings.h"

namespace cubist {
namespace {

// Enough of a wrong-sized file to say what it is.
constexpr std::uint64_t kDescribeBytes = 64 * 1024;
constexpr std::size_t kHashBlockBytes = 256 * 1024;

constexpr std::string_view kRepairHint = "run 'cubist verify --repair' to fetch it again";

Error broken_entry(Error error) {
  return Error(error.code(),
               fmt::format("broken store entry: {}; {}", error.message(), kRepairHint));
}

/// The wrong size with a word on what the file looks like.
Error wrong_size(const EntryFile& entry, const std::string& path, const Sha256Digest& sha256,
                 std::uint64_t size_bytes) {
  std::vector<std::uint8_t> head(std::min(entry.size_bytes, kDescribeBytes));
  if (const Status read = read_entry_at(entry, path, 0, head); !read) return read.error();
  if (head.size() == entry.size_bytes) {
    if (auto verified = VerifiedCubin::verify(std::move(head), sha256, size_bytes, path);
        !verified) {
      return std::move(verified.error());
    }
  }
  return Error(StatusCode::kIntegrity, fmt::format("'{}' has {} bytes, the manifest says {}", path,
                                                   entry.size_bytes, size_bytes));
}

Result<std::optional<VerifiedCubin>> open_in_layer(const std::string& path,
                                                   const KernelRecord& record) {
  CUBIST_ASSIGN_OR_RETURN(const std::optional<EntryFile> entry, open_entry(path));
  if (!entry) return std::optional<VerifiedCubin>();
  mark_in_use(*entry);
  if (entry->size_bytes != record.size_bytes) {
    return tl::unexpected<Error>(wrong_size(*entry, path, record.sha256, record.size_bytes));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(record.size_bytes));
  CUBIST_RETURN_IF_ERROR(read_entry_at(*entry, path, 0, bytes));
  CUBIST_ASSIGN_OR_RETURN(
      VerifiedCubin cubin,
      VerifiedCubin::verify(std::move(bytes), record.sha256, record.size_bytes, path));
  return std::optional<VerifiedCubin>(std::move(cubin));
}

bool is_valid_entry(const std::string& path, const VerifiedCubin& cubin) {
  std::vector<std::uint8_t> buffer;
  return check_entry(path, cubin.sha256(), cubin.bytes().size(), buffer).has_value();
}

// One sync of the file system costs about as much as a few of single files.
constexpr std::size_t kSyncEachUpTo = 4;

Status sync_each(std::span<Store::Staged> group) {
  for (Store::Staged& staged : group) CUBIST_RETURN_IF_ERROR(staged.file.sync());
  return {};
}

Status sync_group(std::span<Store::Staged> group, const std::string& root) {
  if (group.size() <= kSyncEachUpTo) return sync_each(group);
  const UniqueFd folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return sync_each(group);
  if (::syncfs(folder.get()) == 0) return {};
  if (errno == ENOSYS || errno == EINVAL || errno == EBADF) return sync_each(group);
  return tl::unexpected<Error>(store_write_error("cannot sync the file system of", root, errno));
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

Store::Store(StoreOptions options)
    : options_(std::move(options)), shelf_(std::make_shared<BundleShelf>()) {}

Result<Store> Store::open(std::string_view root_override, std::optional<trust::Policy> foreign,
                          std::string origin) {
  CUBIST_ASSIGN_OR_RETURN(StoreOptions options, store_options_from_environment(root_override));
  Store store(std::move(options));
  if (!foreign) {
    CUBIST_ASSIGN_OR_RETURN(const trust::Settings settings, trust::settings_from_environment());
    foreign = settings.foreign_store;
    origin = settings.origins.foreign_store;
  }
  for (const std::string& layer : store.layers()) {
    CUBIST_RETURN_IF_ERROR(trust::check_folder(layer, store_folders(), *foreign, origin));
  }
  return store;
}

std::vector<std::string> Store::layers() const {
  std::vector<std::string> all{options_.root};
  all.insert(all.end(), options_.base_roots.begin(), options_.base_roots.end());
  return all;
}

Result<std::optional<VerifiedCubin>> Store::open_verified(const KernelRecord& record) const {
  std::optional<Error> trouble;
  const auto take = [&](Result<VerifiedCubin> found) -> std::optional<VerifiedCubin> {
    if (found) {
      add_to_counters({.store_hits = 1});
      return std::move(*found);
    }
    add_to_counters({.store_broken = found.error().code() == StatusCode::kIntegrity ? 1U : 0U});
    if (!trouble) trouble = std::move(found.error());
    return std::nullopt;
  };
  const auto say_instead = [&](const std::string& place) {
    if (trouble) log(LogLevel::kWarning, "{}; used '{}' instead", trouble->message(), place);
  };
  for (const std::string& layer : layers()) {
    const std::string path = entry_path(layer, record.sha256);
    auto opened = open_in_layer(path, record);
    if (opened && !*opened) continue;
    auto cubin = take(opened ? Result<VerifiedCubin>(std::move(**opened))
                             : Result<VerifiedCubin>(forward_error(opened)));
    if (!cubin) continue;
    say_instead(path);
    return cubin;
  }
  for (const std::string& layer : layers()) {
    const auto shelf = shelf_->layer(layer);
    if (!shelf) {
      if (!trouble) trouble = shelf.error();
      continue;
    }
    for (const auto& bundle : (*shelf)->bundles) {
      const StoredBundle::Kernel* kernel = bundle->find(record.sha256);
      if (kernel == nullptr) continue;
      auto cubin = take(bundle->open_verified(*kernel, record.size_bytes));
      if (!cubin) continue;
      say_instead(bundle->path());
      return cubin;
    }
  }
  if (!trouble) {
    add_to_counters({.store_misses = 1});
    return std::optional<VerifiedCubin>();
  }
  if (trouble->code() == StatusCode::kIntegrity) trouble = broken_entry(std::move(*trouble));
  return tl::unexpected<Error>(std::move(*trouble));
}

Result<std::optional<Store::Location>> Store::locate(const KernelRecord& record) const {
  const std::vector<std::string> all = layers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string path = entry_path(all[i], record.sha256);
    auto entry = open_entry(path);
    if (!entry && entry.error().code() == StatusCode::kIntegrity) continue;
    if (!entry) return forward_error(entry);
    if (*entry && (*entry)->size_bytes == record.size_bytes) {
      return std::optional<Location>({std::move(path), i, nullptr});
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CUBIST_ASSIGN_OR_RETURN(const auto shelf, shelf_->layer(all[i]));
    for (const auto& bundle : shelf->bundles) {
      const StoredBundle::Kernel* kernel = bundle->find(record.sha256);
      if (kernel == nullptr || kernel->size_bytes != record.size_bytes) continue;
      return std::optional<Location>({bundle->path(), i, bundle});
    }
  }
  return std::optional<Location>();
}

Result<std::optional<std::string>> Store::find(const KernelRecord& record) const {
  CUBIST_ASSIGN_OR_RETURN(std::optional<Location> found, locate(record));
  if (!found) return std::optional<std::string>();
  return std::optional<std::string>(std::move(found->path));
}

Result<std::optional<UniqueFd>> Store::hold(const Sha256Digest& digest) const {
  CUBIST_ASSIGN_OR_RETURN(std::optional<EntryFile> entry,
                          open_entry(entry_path(options_.root, digest)));
  if (!entry) return std::optional<UniqueFd>();
  mark_in_use(*entry);
  return std::optional<UniqueFd>(std::move(entry->fd));
}

Status Store::prepare_folders() const {
  CUBIST_RETURN_IF_ERROR(make_folders(options_.root + "/tmp", 1));
  return make_folders(options_.root + "/sha256", 1);
}

std::size_t Store::sweep() const { return sweep_stale_files(options_.root + "/tmp", 1); }

Result<Store::Staged> Store::stage(const VerifiedCubin& cubin) const {
  CUBIST_RETURN_IF_ERROR(prepare_folders());
  CUBIST_ASSIGN_OR_RETURN(StagedFile file,
                          StagedFile::create(options_.root + "/tmp", kStoreFileDepth));
  CUBIST_RETURN_IF_ERROR(file.write(cubin.bytes()));
  CUBIST_RETURN_IF_ERROR(file.make_read_only());
  return Staged{cubin.sha256(), cubin.bytes().size(), std::move(file)};
}

Status Store::publish(std::span<Staged> group) const {
  CUBIST_RETURN_IF_ERROR(sync_group(group, options_.root));
  std::set<std::string> touched;
  std::vector<std::uint8_t> buffer;
  for (Staged& staged : group) {
    const std::string target = entry_path(options_.root, staged.sha256);
    if (touched.insert(folder_of(target)).second) {
      CUBIST_RETURN_IF_ERROR(make_folders(folder_of(target), kEntryDepth - 1));
    }
    CUBIST_ASSIGN_OR_RETURN(const StagedFile::Published published,
                            staged.file.publish_new(target, kEntryDepth));
    if (published == StagedFile::Published::kYes) continue;
    // Somebody was faster. A valid entry keeps its inode; only a broken one is replaced.
    if (check_entry(target, staged.sha256, staged.size_bytes, buffer)) continue;
    CUBIST_RETURN_IF_ERROR(staged.file.publish_over(target, kEntryDepth));
  }
  for (const std::string& folder : touched) CUBIST_RETURN_IF_ERROR(sync_folder(folder));
  return {};
}

Result<std::string> Store::install(const VerifiedCubin& cubin) const {
  std::string path = entry_path(options_.root, cubin.sha256());
  if (is_valid_entry(path, cubin)) return path;
  sweep();
  CUBIST_ASSIGN_OR_RETURN(Staged staged, stage(cubin));
  CUBIST_RETURN_IF_ERROR(publish({&staged, 1}));
  return path;
}

Result<std::uint64_t> check_entry(const std::string& path, const Sha256Digest& sha256,
                                  std::optional<std::uint64_t> size_bytes,
                                  std::vector<std::uint8_t>& buffer) {
  CUBIST_ASSIGN_OR_RETURN(const std::optional<EntryFile> entry, open_entry(path));
  if (!entry) return fail(StatusCode::kNotFound, "there is no store entry '{}'", path);
  const std::uint64_t size = entry->size_bytes;
  if (size_bytes && size != *size_bytes) {
    return tl::unexpected<Error>(wrong_size(*entry, path, sha256, *size_bytes));
  }
  buffer.resize(kHashBlockBytes);
  Sha256 hasher;
  for (std::uint64_t offset = 0; offset < size;) {
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(kHashBlockBytes, size - offset));
    const std::span<std::uint8_t> block(buffer.data(), length);
    CUBIST_RETURN_IF_ERROR(read_entry_at(*entry, path, offset, block));
    hasher.update(block);
    offset += length;
  }
  if (hasher.finish() == sha256) return size;
  // Read again as a whole for a message that says what the file looks like.
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  CUBIST_RETURN_IF_ERROR(read_entry_at(*entry, path, 0, bytes));
  CUBIST_ASSIGN_OR_RETURN(const VerifiedCubin changed,
                          VerifiedCubin::verify(std::move(bytes), sha256, size, path));
  return fail(StatusCode::kIntegrity, "'{}' changed while it was read", path);
}

}  // namespace cubist
