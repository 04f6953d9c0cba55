#include "archive/zip_writer.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "archive/deflate.h"
#include "archive/zip_format.h"

// The records are drawn above their readers: zip_local_header.cpp, zip_directory.cpp and
// zip_end_record.cpp.

namespace cubist {
namespace {

constexpr std::uint16_t kDosDate1980 = 0x21;     // 1980-01-01
constexpr std::uint16_t kNeededPlain = 20;       // version 2.0: deflate
constexpr std::uint16_t kNeededZip64 = 45;       // version 4.5
constexpr std::uint16_t kMadeOnUnix = 3 << 8;    // host system in the upper byte
constexpr std::uint32_t kRegularFile = 0100644;  // st_mode
constexpr std::uint16_t kMany = 0xffff;

class Record {
 public:
  template <class T>
  Record& put(std::type_identity_t<T> value) {
    static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  Record& u16(std::uint64_t value) { return put<std::uint16_t>(static_cast<std::uint16_t>(value)); }
  Record& u32(std::uint64_t value) { return put<std::uint32_t>(static_cast<std::uint32_t>(value)); }
  Record& u64(std::uint64_t value) { return put<std::uint64_t>(value); }
  Record& text(std::string_view value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Version to Read .. Name Length: what a local header and an entry have in common.
void put_common(Record& record, const ZipMember& member, std::uint16_t needed) {
  record.u16(needed).u16(member.flags).u16(member.method).u16(0).u16(kDosDate1980);
  record.u32(member.crc32).u32(member.compressed_size).u32(member.size).u16(member.name.size());
}

}  // namespace

PackedMember pack_member(std::span<const std::uint8_t> bytes, bool stored) {
  PackedMember packed;
  packed.size = bytes.size();
  packed.crc32 = crc32_of(bytes);
  packed.method = kZipDeflated;
  if (!stored) packed.data = deflate_bytes(bytes);
  if (stored || packed.data.size() >= bytes.size()) {
    packed.method = kZipStored;
    packed.data.assign(bytes.begin(), bytes.end());
  }
  return packed;
}

std::vector<std::uint8_t> zip_local_header(const ZipMember& member) {
  Record record;
  record.u32(kZipLocalSignature);
  put_common(record, member, kNeededPlain);
  return record.u16(0).text(member.name).take();
}

std::vector<std::uint8_t> zip_directory_entry(const ZipMember& member) {
  const bool wide = member.header_offset >= kZip64Marker;
  const std::uint16_t needed = wide ? kNeededZip64 : kNeededPlain;
  Record record;
  record.u32(kZipEntrySignature).u16(kMadeOnUnix | needed);
  put_common(record, member, needed);
  constexpr std::uint16_t kZip64Bytes = 8;  // the offset alone
  record.u16(wide ? 4 + kZip64Bytes : 0).u16(0).u16(0).u16(0).u32(kRegularFile << 16);
  record.u32(wide ? kZip64Marker : member.header_offset).text(member.name);
  if (wide) record.u16(kZip64Extra).u16(kZip64Bytes).u64(member.header_offset);
  return record.take();
}

std::vector<std::uint8_t> zip_end_records(std::uint64_t num_members, std::uint64_t directory_offset,
                                          std::uint64_t directory_size) {
  const bool wide =
      num_members >= kMany || directory_offset >= kZip64Marker || directory_size >= kZip64Marker;
  Record record;
  if (wide) {
    constexpr std::uint64_t kBytesBehindLength = 44;
    record.u32(kZip64EndSignature).u64(kBytesBehindLength);
    record.u16(kMadeOnUnix | kNeededZip64).u16(kNeededZip64).u32(0).u32(0);
    record.u64(num_members).u64(num_members).u64(directory_size).u64(directory_offset);
    record.u32(kZip64LocatorSignature).u32(0).u64(directory_offset + directory_size).u32(1);
  }
  const std::uint64_t count = wide ? kMany : num_members;
  record.u32(kZipEndSignature).u16(0).u16(0).u16(count).u16(count);
  record.u32(wide ? kZip64Marker : directory_size).u32(wide ? kZip64Marker : directory_offset);
  return record.u16(0).take();
}

Status ZipWriter::write(std::span<const std::uint8_t> bytes) {
  CUBIST_RETURN_IF_ERROR(sink_(bytes));
  offset_ += bytes.size();
  return {};
}

Status ZipWriter::add(std::string_view name, const PackedMember& packed) {
  if (packed.size >= kZip64Marker || packed.data.size() >= kZip64Marker) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' has {} bytes; 4 GiB and more are not written into a zip", name, packed.size);
  }
  ZipMember member;
  member.name = name;
  member.compressed_size = packed.data.size();
  member.size = packed.size;
  member.header_offset = offset_;
  member.crc32 = packed.crc32;
  member.method = packed.method;
  CUBIST_RETURN_IF_ERROR(write(zip_local_header(member)));
  CUBIST_RETURN_IF_ERROR(write(packed.data));
  member.limit_offset = offset_;
  members_.push_back(std::move(member));
  return {};
}

Status ZipWriter::finish() {
  const std::uint64_t directory_offset = offset_;
  std::vector<std::uint8_t> directory;
  for (const ZipMember& member : members_) {
    const std::vector<std::uint8_t> entry = zip_directory_entry(member);
    directory.insert(directory.end(), entry.begin(), entry.end());
  }
  const std::vector<std::uint8_t> end =
      zip_end_records(members_.size(), directory_offset, directory.size());
  directory.insert(directory.end(), end.begin(), end.end());
  return write(directory);
}

}  // namespace cubist
