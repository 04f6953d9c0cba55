#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "archive/random_access.h"
#include "base/file.h"
#include "base/result.h"

namespace cubist {

/// One file of a zip, as its central directory describes it.
struct ZipMember {
  std::string
      name;  ///< checked: relative, "/"-separated, no ".." part, no control characters, UTF-8
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;  ///< of the local header
  /// Where the next local header or the directory begins: the local header and the data lie in
  /// front.
  std::uint64_t limit_offset = 0;
  std::uint32_t crc32 = 0;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated; others are refused on reading
  std::uint16_t flags = 0;   ///< the directory's general purpose bits
};

/// Reads zip files (wheels are zips) with zip64, from anything that can be read at an offset, with
/// as few reads as possible: one of the last 64 KiB, one of the directory (none if it lies in those
/// 64 KiB), and one a member.
///
/// Const functions are safe from several threads at once if the RandomAccess is.
class ZipArchive {
 public:
  /// The bytes of a file that hold a member.
  struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  /// errors  kIntegrity: no zip; a directory that lies (counts, offsets, sizes, members that
  /// overlap,
  ///         duplicate or unsafe names); encrypted, split or self-extracting archives.
  ///         Whatever reading the bytes fails with.
  static Result<ZipArchive> open(std::shared_ptr<RandomAccess> bytes);

  ZipArchive(ZipArchive&&) = default;
  ZipArchive& operator=(ZipArchive&&) = default;

  /// What messages call the file.
  const std::string& name() const { return bytes_->name(); }
  /// In the directory's order. Entries for folders are checked too, but left out.
  const std::vector<ZipMember>& members() const { return members_; }
  /// Null if there is no such member. The pointer lives as long as the archive.
  const ZipMember* find(std::string_view member_name) const;

  /// The member's bytes, inflated; size, CRC and the local header are checked. max_size guards
  /// against bombs: a member that claims or produces more is refused, before it is read if it can
  /// be.
  Result<std::vector<std::uint8_t>> read(const ZipMember& member, std::uint64_t max_size) const;

  /// read() in two steps, for callers who fetch the bytes themselves: the one range to fetch, and
  /// the member made of exactly those bytes.
  Extent extent(const ZipMember& member) const;
  Result<std::vector<std::uint8_t>> unpack(const ZipMember& member,
                                           std::span<const std::uint8_t> extent_bytes,
                                           std::uint64_t max_size) const;

 private:
  ZipArchive(std::shared_ptr<RandomAccess> bytes, std::vector<ZipMember> members);

  std::shared_ptr<RandomAccess> bytes_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // views into members_
};

/// The member made of the bytes from its local header on, where the archive around it is not at
/// hand.
///
/// out     of as many bytes as the member claims (member.size)
/// zip     what messages call the file
/// errors  those of ZipArchive::unpack; what is in `out` then means nothing
Status unpack_zip_member(const ZipMember& member, std::span<const std::uint8_t> extent_bytes,
                         std::span<std::uint8_t> out, const std::string& zip);

/// A regular file on this machine. Safe from any thread.
Result<std::shared_ptr<RandomAccess>> open_file_access(const std::string& path);
/// One that is open already. name: what messages call it.
Result<std::shared_ptr<RandomAccess>> file_access(std::string name, UniqueFd fd);
/// Bytes in memory; copies nothing, so they must outlive it. Safe from any thread.
std::shared_ptr<RandomAccess> memory_access(std::string name, std::span<const std::uint8_t> bytes);

}  // namespace cubist
