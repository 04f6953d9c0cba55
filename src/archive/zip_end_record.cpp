#include "archive/zip_end_record.h"

#include <algorithm>
#include <optional>

#include "archive/zip_format.h"
#include "base/byte_reader.h"

// The end of a zip (PKWARE APPNOTE 4.3.14 to 4.3.16), little-endian:
//
//   ... directory | zip64 end record | zip64 locator | end record | comment | end of file
//                   (only if a count, size or offset does not fit the end record)
//
//   end record, 22 bytes         zip64 locator, 20 bytes      zip64 end record, 56 bytes or more
//    0 u32 "PK\5\6"               0 u32 "PK\6\7"               0 u32 "PK\6\6"
//    4 u16 number of this disk    4 u32 disk of the record     4 u64 bytes that follow this field
//    6 u16 disk of the directory  8 u64 offset of the record  12 u16 made by, u16 needed to read
//    8 u16 entries on this disk  16 u32 number of disks       16 u32 number of this disk
//   10 u16 entries                                            20 u32 disk of the directory
//   12 u32 directory size                                     24 u64 entries on this disk
//   16 u32 directory offset                                   32 u64 entries
//   20 u16 comment length                                     40 u64 directory size
//                                                             48 u64 directory offset
//
// All ones in a field of the end record stand for "see the zip64 record".

namespace cubist {
namespace {

constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kLocatorBytes = 20;
constexpr std::uint64_t kZip64EndBytes = 56;
// The longest comment and the records around it: an end record cannot lie further from the end.
constexpr std::uint64_t kTailBytes = 0xffff + kEndBytes + kLocatorBytes + kZip64EndBytes;
// A directory of 300,000 members is about 60 MB; more is a file that was made to use up memory.
constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{1} << 26;

using EndRecord = FixedRecord<kEndBytes>;
using Zip64EndRecord = FixedRecord<kZip64EndBytes>;

/// The offset in `tail` of the one end record whose comment ends with the file.
Result<std::uint64_t> find_end_record(const ByteReader& tail, const std::string& name) {
  std::optional<std::uint64_t> found;
  for (std::uint64_t at = 0; at + kEndBytes <= tail.size(); ++at) {
    if (tail.read<std::uint32_t>(at) != kZipEndSignature) continue;
    const std::optional<EndRecord> record = tail.record<kEndBytes>(at);
    if (at + kEndBytes + record->get<std::uint16_t, 20>() != tail.size()) continue;
    if (found) {
      return fail(StatusCode::kIntegrity,
                  "'{}' has two zip end records that both fit; which files it holds is ambiguous",
                  name);
    }
    found = at;
  }
  if (!found) {
    return fail(StatusCode::kIntegrity,
                "'{}' is no complete zip file: no end record in its last {} bytes; it may be "
                "truncated or something else",
                name, tail.size());
  }
  return *found;
}

/// The zip64 record that a locator right in front of the end record points to, if there is one.
/// `end` is reduced to where the record begins.
Result<std::optional<Zip64EndRecord>> read_zip64_end(RandomAccess& bytes, const ByteReader& tail,
                                                     std::uint64_t tail_offset,
                                                     std::uint64_t& end) {
  const std::string& name = bytes.name();
  if (end - tail_offset < kLocatorBytes) return std::optional<Zip64EndRecord>();
  const std::uint64_t locator_offset = end - kLocatorBytes;
  const auto locator = tail.record<kLocatorBytes>(locator_offset - tail_offset);
  if (!locator || locator->get<std::uint32_t, 0>() != kZip64LocatorSignature) {
    return std::optional<Zip64EndRecord>();
  }
  if (locator->get<std::uint32_t, 4>() != 0 || locator->get<std::uint32_t, 16>() > 1) {
    return fail(StatusCode::kIntegrity, "'{}' is one part of a split zip; those are not read",
                name);
  }
  const std::uint64_t offset = locator->get<std::uint64_t, 8>();
  if (offset > locator_offset || locator_offset - offset < kZip64EndBytes) {
    return fail(StatusCode::kIntegrity,
                "'{}': the zip64 locator points to byte {}, where no zip64 end record fits before "
                "byte {}",
                name, offset, locator_offset);
  }
  std::uint8_t buffer[kZip64EndBytes];
  if (offset >= tail_offset) {
    const auto here = *tail.slice(offset - tail_offset, kZip64EndBytes);
    std::copy(here.begin(), here.end(), buffer);
  } else {
    CUBIST_RETURN_IF_ERROR(bytes.read(offset, buffer));
  }
  const Zip64EndRecord record(buffer);
  if (record.get<std::uint32_t, 0>() != kZip64EndSignature ||
      record.get<std::uint64_t, 4>() != locator_offset - offset - 12) {
    return fail(StatusCode::kIntegrity,
                "'{}': the zip64 locator points to byte {}, which holds no zip64 end record of {} "
                "bytes",
                name, offset, locator_offset - offset);
  }
  end = offset;
  return std::optional<Zip64EndRecord>(record);
}

/// Takes `wide` where the end record says all ones; a value that is neither is a contradiction.
template <class Narrow>
bool combine(Narrow narrow, std::uint64_t wide, std::uint64_t& out) {
  out = wide;
  return narrow == static_cast<Narrow>(~Narrow{0}) || narrow == wide;
}

Status take_counts(const EndRecord& record, const std::optional<Zip64EndRecord>& zip64,
                   const std::string& name, ZipEnd& out) {
  const std::uint64_t entries_here =
      zip64 ? zip64->get<std::uint64_t, 24>() : record.get<std::uint16_t, 8>();
  const std::uint64_t disk =
      zip64 ? zip64->get<std::uint32_t, 16>() : record.get<std::uint16_t, 4>();
  const std::uint64_t directory_disk =
      zip64 ? zip64->get<std::uint32_t, 20>() : record.get<std::uint16_t, 6>();
  if (!zip64) {
    out.num_entries = record.get<std::uint16_t, 10>();
    out.directory_size = record.get<std::uint32_t, 12>();
    out.directory_offset = record.get<std::uint32_t, 16>();
  } else if (!combine(record.get<std::uint16_t, 10>(), zip64->get<std::uint64_t, 32>(),
                      out.num_entries) ||
             !combine(record.get<std::uint32_t, 12>(), zip64->get<std::uint64_t, 40>(),
                      out.directory_size) ||
             !combine(record.get<std::uint32_t, 16>(), zip64->get<std::uint64_t, 48>(),
                      out.directory_offset)) {
    return fail(StatusCode::kIntegrity,
                "'{}': the zip end record and its zip64 record contradict each other", name);
  }
  if (disk != 0 || directory_disk != 0 || entries_here != out.num_entries) {
    return fail(StatusCode::kIntegrity, "'{}' is one part of a split zip; those are not read",
                name);
  }
  return {};
}

/// The directory must fill the bytes up to `end` exactly, and its entries must fit into it.
Status check_directory_place(const ZipEnd& zip, std::uint64_t end, const std::string& name) {
  if (zip.directory_size > end || zip.directory_offset != end - zip.directory_size) {
    return fail(
        StatusCode::kIntegrity,
        "'{}': the zip directory is said to be {} bytes at {}, but must end at byte {}; the "
        "file is damaged, or has something in front of the zip",
        name, zip.directory_size, zip.directory_offset, end);
  }
  if (zip.directory_size > kMaxDirectoryBytes) {
    return fail(StatusCode::kIntegrity, "'{}': the zip directory has {} bytes; at most {} are read",
                name, zip.directory_size, kMaxDirectoryBytes);
  }
  if (zip.num_entries > zip.directory_size / kZipEntryBytes) {
    return fail(StatusCode::kIntegrity,
                "'{}': the zip end record counts {} entries, which do not fit into a directory of "
                "{} bytes",
                name, zip.num_entries, zip.directory_size);
  }
  return {};
}

}  // namespace

Result<ZipEnd> read_zip_end(RandomAccess& bytes) {
  const std::uint64_t size = bytes.size();
  ZipEnd zip;
  zip.tail.resize(static_cast<std::size_t>(std::min(size, kTailBytes)));
  zip.tail_offset = size - zip.tail.size();
  CUBIST_RETURN_IF_ERROR(bytes.read(zip.tail_offset, zip.tail));

  const ByteReader tail(zip.tail);
  CUBIST_ASSIGN_OR_RETURN(const std::uint64_t at, find_end_record(tail, bytes.name()));
  std::uint64_t directory_end = zip.tail_offset + at;
  CUBIST_ASSIGN_OR_RETURN(const std::optional<Zip64EndRecord> zip64,
                          read_zip64_end(bytes, tail, zip.tail_offset, directory_end));
  CUBIST_RETURN_IF_ERROR(take_counts(*tail.record<kEndBytes>(at), zip64, bytes.name(), zip));
  CUBIST_RETURN_IF_ERROR(check_directory_place(zip, directory_end, bytes.name()));
  return zip;
}

}  // namespace cubist
