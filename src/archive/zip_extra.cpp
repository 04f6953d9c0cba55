#include "archive/zip_extra.h"

#include <optional>

#include "archive/zip_format.h"
#include "base/byte_reader.h"

// Extra fields are records: u16 id, u16 length, payload. The zip64 one (id 1) holds a u64 for each
// of size, compressed size, header offset (in this order) whose 32-bit field is all ones, then a
// u32 disk number if that field is all ones. Some writers put all of them there; what follows the
// wanted values is not looked at.

namespace cubist {
namespace {

/// False if the records do not fill `extra` or zip64 occurs twice; `zip64` is left empty if it does
/// not occur.
bool find_zip64(const ByteReader& extra, std::optional<std::span<const std::uint8_t>>& zip64) {
  std::uint64_t at = 0;
  while (at < extra.size()) {
    const auto header = extra.record<4>(at);
    if (!header) return false;
    const auto payload = extra.slice(at + 4, header->get<std::uint16_t, 2>());
    if (!payload) return false;
    if (header->get<std::uint16_t, 0>() == kZip64Extra) {
      if (zip64) return false;
      zip64 = *payload;
    }
    at += 4 + payload->size();
  }
  return true;
}

}  // namespace

bool widen_zip_fields(std::span<const std::uint8_t> extra, ZipWideFields& fields) {
  std::optional<std::span<const std::uint8_t>> zip64;
  if (!find_zip64(ByteReader(extra), zip64)) return false;
  const ByteReader values(zip64.value_or(std::span<const std::uint8_t>()));
  std::uint64_t at = 0;
  for (std::uint64_t* field : {&fields.size, &fields.compressed_size, &fields.header_offset}) {
    if (*field != kZip64Marker) continue;
    const auto value = values.read<std::uint64_t>(at);
    if (!value) return false;
    *field = *value;
    at += sizeof(std::uint64_t);
  }
  return true;
}

}  // namespace cubist
