#include "cubin/nv_info.h"

#include "base/byte_reader.h"
#include "cubin/elf_file.h"

// A .nv.info section is records one behind the other:
//
//   0 u8 format   1 u8 id   2 u16 value          formats 1 (no value), 2 (one byte), 3 (two bytes)
//   0 u8 4        1 u8 id   2 u16 length  4 ...  format 4: `length` bytes of payload follow

namespace cubist {

Result<std::optional<NvInfoRecord>> NvInfoReader::next() {
  const ByteReader reader(bytes_);
  if (at_ == bytes_.size()) return std::optional<NvInfoRecord>();
  const auto header = reader.record<4>(at_);
  if (!header) {
    return broken_cubin(file_, "{} ends inside a record at its byte {}", section_, at_);
  }
  NvInfoRecord record;
  record.format = header->get<std::uint8_t, 0>();
  record.id = header->get<std::uint8_t, 1>();
  record.value = header->get<std::uint16_t, 2>();
  if (record.format < 1 || record.format > 4) {
    return broken_cubin(file_, "{} has a record of unknown format {} at its byte {}", section_,
                        record.format, at_);
  }
  std::size_t length = 4;
  if (record.format == 4) {
    const auto payload = reader.slice(at_ + 4, record.value);
    if (!payload) {
      return broken_cubin(file_,
                          "{} ends inside the payload of record {:#04x} ({} bytes) at its "
                          "byte {}",
                          section_, record.id, record.value, at_);
    }
    record.payload = *payload;
    length += payload->size();
  }
  at_ += length;
  return std::optional<NvInfoRecord>(record);
}

}  // namespace cubist
