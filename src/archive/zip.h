#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "archive/random_access.h"
#include "base/result.h"

namespace cubist {

/// One file of a zip, as its central directory describes it.
struct ZipMember {
  std::string name;  ///< checked: relative, "/"-separated, no "..", no control characters
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_offset = 0;  ///< of the local header
  std::uint32_t crc32 = 0;
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated; others are refused on reading
};

/// Reads zip files (wheels are zips) with zip64, from anything that can be read at an offset, with as
/// few reads as possible: one for the end record (and usually the whole directory), one a member.
class ZipArchive {
 public:
  /// errors  kIntegrity: no zip, or a directory that lies (counts, offsets, duplicate or unsafe names)
  static Result<ZipArchive> open(std::shared_ptr<RandomAccess> bytes);

  const std::vector<ZipMember>& members() const { return members_; }
  /// Null if there is no such member. The pointer lives as long as the archive.
  const ZipMember* find(std::string_view name) const;

  /// The member's bytes, inflated; size, CRC and the local header are checked. max_size guards
  /// against bombs: a member that claims or produces more is refused.
  Result<std::vector<std::uint8_t>> read(const ZipMember& member, std::uint64_t max_size);

 private:
  std::shared_ptr<RandomAccess> bytes_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

/// A file on this machine.
Result<std::shared_ptr<RandomAccess>> open_file_access(const std::string& path);
/// Bytes in memory; copies nothing, so they must outlive it.
std::shared_ptr<RandomAccess> memory_access(std::string name, std::span<const std::uint8_t> bytes);

}  // namespace cubist
