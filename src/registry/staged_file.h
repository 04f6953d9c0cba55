#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace cubist {

// In all of this `depth` says how many of a path's last steps lie below a folder that others may
// write, where no link is followed (store_file.h).

/// A file being written below <root>/tmp, locked while its writer lives. It disappears with the
/// object unless it was published. Movable; one thread at a time.
class StagedFile {
 public:
  /// A new empty file in `folder`, which must exist. `depth` is the new file's.
  static Result<StagedFile> create(const std::string& folder, int depth = 1);

  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&& other) noexcept;
  ~StagedFile();

  const std::string& path() const { return path_; }

  /// All of `bytes`; errors name the space that is free where the disk is full.
  Status write(std::span<const std::uint8_t> bytes);
  Status make_read_only();
  /// Makes the bytes durable.
  Status sync();

  enum class Published : std::uint8_t { kYes, kTargetExists };
  /// Gives the file its final name unless that name is taken (then the file stays staged).
  Result<Published> publish_new(const std::string& target, int depth = 1);
  /// Gives the file its final name, in place of whatever has it; a folder there is put aside.
  Status publish_over(const std::string& target, int depth = 1);

 private:
  StagedFile(std::string path, int depth, UniqueFd fd)
      : path_(std::move(path)), depth_(depth), fd_(std::move(fd)) {}

  std::string path_;  ///< empty once published
  int depth_;
  UniqueFd fd_;
};

/// Unlinks the files in `folder` whose writers are gone; never fails, reports how many it removed.
std::size_t sweep_stale_files(const std::string& folder, int depth = 0);

/// Frees a name that a folder has: an empty one is removed, another is renamed to NAME.aside (or
/// NAME.aside-2 and so on), with a warning that says so. Nothing in it is touched, no link is
/// followed. errors  kIo: says what to remove
Status put_folder_aside(const std::string& path, int depth = 1);

/// mkdir -p, every new level durable.
Status make_folders(const std::string& path, int depth = 0);
/// Makes the names in a folder durable.
Status sync_folder(const std::string& path);

/// A failed write as an Error that says what to do next: another store, more space, permissions.
Error store_write_error(std::string_view what, const std::string& path, int error_number,
                        std::uint64_t needed_bytes = 0);

}  // namespace cubist
