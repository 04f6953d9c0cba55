#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/zip.h"
#include "base/result.h"

namespace cubist {

/// A member's bytes as a zip holds them.
struct PackedMember {
  std::vector<std::uint8_t> data;
  std::uint64_t size = 0;  ///< before packing
  std::uint32_t crc32 = 0;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
};

/// Deflates, unless `stored` is asked for or deflate would not make it smaller. Pure: for any
/// thread.
PackedMember pack_member(std::span<const std::uint8_t> bytes, bool stored);

// The records of the one form that ZipWriter writes: nothing in them but the member's own fields.
// Time stamp 1980-01-01 00:00, a regular file of mode 0644 made on Unix, no comment, no extra field
// but zip64 where an offset needs it. Names are ASCII; no member reaches 4 GiB.

/// What stands in front of a member's data.
std::vector<std::uint8_t> zip_local_header(const ZipMember& member);
/// The member's entry in the directory.
std::vector<std::uint8_t> zip_directory_entry(const ZipMember& member);
/// What follows the directory: the end record, and the zip64 records if a number needs them.
std::vector<std::uint8_t> zip_end_records(std::uint64_t num_members, std::uint64_t directory_offset,
                                          std::uint64_t directory_size);

/// Writes a zip from front to back. The same members in the same order make the same bytes. One
/// thread at a time.
class ZipWriter {
 public:
  using Sink = std::function<Status(std::span<const std::uint8_t>)>;

  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}

  /// name    ASCII, unique among the members; not looked at
  /// errors  those of the sink; kInvalidArgument: 4 GiB and more
  Status add(std::string_view name, const PackedMember& packed);
  /// The directory; nothing may be added afterwards.
  Status finish();

  /// What was added, in order, with limit_offset set.
  const std::vector<ZipMember>& members() const { return members_; }
  /// Bytes written so far.
  std::uint64_t offset() const { return offset_; }

 private:
  Status write(std::span<const std::uint8_t> bytes);

  Sink sink_;
  std::vector<ZipMember> members_;
  std::uint64_t offset_ = 0;
};

}  // namespace cubist
