#include "archive/zip.h"

#include <algorithm>
#include <utility>

#include "archive/deflate.h"
#include "archive/inflate.h"
#include "archive/zip_directory.h"
#include "archive/zip_end_record.h"
#include "archive/zip_format.h"
#include "archive/zip_local_header.h"

namespace cubist {
namespace {

// A local header's extra fields, and sizes and CRC behind the data (zip64: 24 bytes).
constexpr std::uint64_t kMaxExtraAndDescriptor = 0xffff + 24;

/// The directory's bytes: out of the tail if they are there, else in one read.
Result<std::vector<std::uint8_t>> read_directory(RandomAccess& bytes, ZipEnd& end) {
  if (end.directory_offset >= end.tail_offset) {
    const auto first =
        end.tail.begin() + static_cast<std::ptrdiff_t>(end.directory_offset - end.tail_offset);
    return std::vector<std::uint8_t>(first,
                                     first + static_cast<std::ptrdiff_t>(end.directory_size));
  }
  std::vector<std::uint8_t> directory(static_cast<std::size_t>(end.directory_size));
  CUBIST_RETURN_IF_ERROR(bytes.read(end.directory_offset, directory));
  return directory;
}

Status check_method(const ZipMember& member, const std::string& zip) {
  if (member.method != kZipStored && member.method != kZipDeflated) {
    return fail(StatusCode::kIntegrity,
                "'{}': zip member '{}' is packed with method {}; only 0 (stored) and 8 (deflated) "
                "are read",
                zip, member.name, member.method);
  }
  return {};
}

Status check_limits(const ZipMember& member, std::uint64_t max_size, const std::string& zip) {
  CUBIST_RETURN_IF_ERROR(check_method(member, zip));
  // Deflate grows what it cannot pack by 5 bytes in 16 KiB; twice the limit is room enough.
  if (member.size > max_size || member.compressed_size / 2 > max_size) {
    return fail(StatusCode::kIntegrity,
                "'{}': zip member '{}' has {} bytes ({} compressed); at most {} are accepted here",
                zip, member.name, member.size, member.compressed_size, max_size);
  }
  return {};
}

}  // namespace

ZipArchive::ZipArchive(std::shared_ptr<RandomAccess> bytes, std::vector<ZipMember> members)
    : bytes_(std::move(bytes)), members_(std::move(members)) {
  by_name_.reserve(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) by_name_.emplace(members_[i].name, i);
}

Result<ZipArchive> ZipArchive::open(std::shared_ptr<RandomAccess> bytes) {
  CUBIST_ASSIGN_OR_RETURN(ZipEnd end, read_zip_end(*bytes));
  CUBIST_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> directory, read_directory(*bytes, end));
  CUBIST_ASSIGN_OR_RETURN(
      std::vector<ZipMember> members,
      parse_zip_directory(directory, end.num_entries, end.directory_offset, bytes->name()));
  return ZipArchive(std::move(bytes), std::move(members));
}

const ZipMember* ZipArchive::find(std::string_view member_name) const {
  const auto found = by_name_.find(member_name);
  return found == by_name_.end() ? nullptr : &members_[found->second];
}

ZipArchive::Extent ZipArchive::extent(const ZipMember& member) const {
  const std::uint64_t most =
      kZipLocalBytes + member.name.size() + kMaxExtraAndDescriptor + member.compressed_size;
  return {member.header_offset, std::min(most, member.limit_offset - member.header_offset)};
}

Result<std::vector<std::uint8_t>> ZipArchive::read(const ZipMember& member,
                                                   std::uint64_t max_size) const {
  CUBIST_RETURN_IF_ERROR(check_limits(member, max_size, name()));
  const Extent range = extent(member);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(range.length));
  CUBIST_RETURN_IF_ERROR(bytes_->read(range.offset, bytes));
  return unpack(member, bytes, max_size);
}

Result<std::vector<std::uint8_t>> ZipArchive::unpack(const ZipMember& member,
                                                     std::span<const std::uint8_t> extent_bytes,
                                                     std::uint64_t max_size) const {
  CUBIST_RETURN_IF_ERROR(check_limits(member, max_size, name()));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(member.size));
  CUBIST_RETURN_IF_ERROR(unpack_zip_member(member, extent_bytes, out, name()));
  return out;
}

Status unpack_zip_member(const ZipMember& member, std::span<const std::uint8_t> extent_bytes,
                         std::span<std::uint8_t> out, const std::string& zip) {
  CUBIST_RETURN_IF_ERROR(check_method(member, zip));
  CUBIST_ASSIGN_OR_RETURN(const auto data, member_data(extent_bytes, member, zip));
  if (member.method == kZipDeflated) {
    if (const InflateOutcome outcome = inflate_exactly(data, out); outcome != InflateOutcome::kOk) {
      return fail(StatusCode::kIntegrity, "'{}': zip member '{}' is damaged: {}", zip, member.name,
                  describe(outcome));
    }
  } else if (data.size() == out.size()) {
    std::copy(data.begin(), data.end(), out.begin());
  } else {
    return fail(StatusCode::kIntegrity,
                "'{}': zip member '{}' is damaged: {} bytes are stored, {} belong there", zip,
                member.name, data.size(), out.size());
  }
  if (const std::uint32_t found = crc32_of(out); found != member.crc32) {
    return fail(StatusCode::kIntegrity,
                "'{}': zip member '{}' is damaged: CRC-32 {:08x}, the directory says {:08x}", zip,
                member.name, found, member.crc32);
  }
  return {};
}

}  // namespace cubist
