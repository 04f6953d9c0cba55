#include "archive/zip_local_header.h"

#include <algorithm>

#include "archive/zip_extra.h"
#include "archive/zip_format.h"
#include "base/byte_reader.h"

// A member is a local header (PKWARE APPNOTE 4.3.7), little-endian, and its data:
//
//    0 u32 "PK\3\4"          14 u32 CRC-32              26 u16 name length
//    4 u16 needed to read    18 u32 compressed size *   28 u16 extra length
//    6 u16 flags             22 u32 size *              30 name, extra fields, data
//    8 u16 method
//   10 u16 time, u16 date
//
//   * all ones: the value is in the zip64 extra field
//
// With flag 3 the writer did not know CRC and sizes yet: they are zero here and follow the data.
// The directory's values count; the ones behind the data are not looked at.

namespace cubist {
namespace {

bool agrees(std::uint64_t local, std::uint64_t directory, bool may_be_zero) {
  return local == directory || (may_be_zero && local == 0);
}

}  // namespace

Result<std::span<const std::uint8_t>> member_data(std::span<const std::uint8_t> extent,
                                                  const ZipMember& member, const std::string& zip) {
  const ByteReader reader(extent);
  const auto header = reader.record<kZipLocalBytes>(0);
  if (!header || header->get<std::uint32_t, 0>() != kZipLocalSignature) {
    return fail(StatusCode::kIntegrity, "'{}': no local header of zip member '{}' at byte {}", zip,
                member.name, member.header_offset);
  }
  const auto disagreement = [&](const char* what) {
    return fail(StatusCode::kIntegrity,
                "'{}': the local header of zip member '{}' and the directory disagree about its {}",
                zip, member.name, what);
  };
  const std::uint16_t name_length = header->get<std::uint16_t, 26>();
  const auto name = reader.slice(kZipLocalBytes, name_length);
  if (!name ||
      !std::equal(name->begin(), name->end(), member.name.begin(), member.name.end(),
                  [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); })) {
    return disagreement("name");
  }
  if (header->get<std::uint16_t, 6>() != member.flags) return disagreement("flags");
  if (header->get<std::uint16_t, 8>() != member.method) return disagreement("method");

  const std::uint16_t extra_length = header->get<std::uint16_t, 28>();
  const auto extra = reader.slice(kZipLocalBytes + name_length, extra_length);
  ZipWideFields wide{header->get<std::uint32_t, 22>(), header->get<std::uint32_t, 18>(), 0};
  if (!extra || !widen_zip_fields(*extra, wide)) return disagreement("extra fields");
  const bool later = (member.flags & kZipFlagDescriptor) != 0;
  if (!agrees(wide.size, member.size, later)) return disagreement("size");
  if (!agrees(wide.compressed_size, member.compressed_size, later)) {
    return disagreement("compressed size");
  }
  if (!agrees(header->get<std::uint32_t, 14>(), member.crc32, later)) return disagreement("CRC-32");

  const auto data =
      reader.slice(kZipLocalBytes + name_length + extra_length, member.compressed_size);
  if (!data) {
    return fail(
        StatusCode::kIntegrity,
        "'{}': the {} bytes of zip member '{}' run past byte {}, where something else begins", zip,
        member.compressed_size, member.name, member.limit_offset);
  }
  return *data;
}

}  // namespace cubist
