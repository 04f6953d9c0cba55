#include "archive/zip_directory.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "archive/member_name.h"
#include "archive/zip_extra.h"
#include "archive/zip_format.h"
#include "base/byte_reader.h"

// The central directory is entries one behind the other (PKWARE APPNOTE 4.3.12), little-endian:
//
//    0 u32 "PK\1\2"            16 u32 CRC-32              32 u16 comment length
//    4 u16 made by             20 u32 compressed size *   34 u16 disk of the local header
//    6 u16 needed to read      24 u32 size *              36 u16 internal attributes
//    8 u16 flags               28 u16 name length         38 u32 external attributes
//   10 u16 method              30 u16 extra length        42 u32 offset of the local header *
//   12 u16 time, u16 date                                 46 name, extra fields, comment
//
//   * all ones: the value is in the zip64 extra field

namespace cubist {
namespace {

// Deflate cannot do better than 258 bytes for 2 bits (RFC 1951: a match of 258, one-bit codes).
constexpr std::uint64_t kMaxDeflateRatio = 1032;

struct Entry {
  ZipMember member;
  std::uint64_t entry_bytes = 0;  ///< of the directory
  bool folder = false;
};

/// "'wheel' is damaged: member 'name' ..."
template <class... Args>
tl::unexpected<Error> member_error(const std::string& zip, std::string_view member,
                                   fmt::format_string<Args...> text, Args&&... args) {
  return fail(StatusCode::kIntegrity, "'{}': zip member '{}' {}", zip,
              printable_member_name(member), fmt::format(text, std::forward<Args>(args)...));
}

Status check_entry(const ZipMember& member, bool folder, std::uint16_t disk,
                   const std::string& zip) {
  const std::string_view name = member.name;
  if (const std::string_view why = unsafe_member_name(name); !why.empty()) {
    return fail(StatusCode::kIntegrity, "'{}': the name of zip member '{}' {}", zip,
                printable_member_name(name), why);
  }
  constexpr std::uint16_t kRefused =
      kZipFlagEncrypted | kZipFlagPatch | kZipFlagStrongEncryption | kZipFlagMasked;
  if ((member.flags & kRefused) != 0) {
    return member_error(zip, name, "is encrypted or patched (flags {:#06x}); this is not read",
                        member.flags);
  }
  if (disk != 0) return member_error(zip, name, "lies on disk {} of a split zip", disk);
  if (folder && member.size != 0) {
    return member_error(zip, name, "is a folder, but has {} bytes", member.size);
  }
  if (member.method == kZipStored && member.size != member.compressed_size) {
    return member_error(zip, name, "is stored, but {} bytes are said to take {}", member.size,
                        member.compressed_size);
  }
  if (member.method == kZipDeflated && member.size / kMaxDeflateRatio > member.compressed_size) {
    return member_error(zip, name, "claims {} bytes out of {}: more than deflate can pack",
                        member.size, member.compressed_size);
  }
  return {};
}

Result<Entry> parse_entry(const ByteReader& directory, std::uint64_t at, std::uint64_t index,
                          const std::string& zip) {
  const auto header = directory.record<kZipEntryBytes>(at);
  if (!header || header->get<std::uint32_t, 0>() != kZipEntrySignature) {
    return fail(StatusCode::kIntegrity,
                "'{}': no zip directory entry {} at byte {} of the directory", zip, index, at);
  }
  const std::uint16_t name_length = header->get<std::uint16_t, 28>();
  const std::uint16_t extra_length = header->get<std::uint16_t, 30>();
  const std::uint64_t entry_bytes =
      kZipEntryBytes + name_length + extra_length + header->get<std::uint16_t, 32>();
  if (!directory.slice(at, entry_bytes)) {
    return fail(StatusCode::kIntegrity,
                "'{}': zip directory entry {} has {} bytes, which run past the directory's end",
                zip, index, entry_bytes);
  }
  const auto name = *directory.slice(at + kZipEntryBytes, name_length);

  Entry entry;
  entry.entry_bytes = entry_bytes;
  ZipMember& member = entry.member;
  member.name.assign(name.begin(), name.end());
  entry.folder = !member.name.empty() && member.name.back() == '/';
  member.flags = header->get<std::uint16_t, 8>();
  member.method = header->get<std::uint16_t, 10>();
  member.crc32 = header->get<std::uint32_t, 16>();

  ZipWideFields wide{header->get<std::uint32_t, 24>(), header->get<std::uint32_t, 20>(),
                     header->get<std::uint32_t, 42>()};
  if (!widen_zip_fields(*directory.slice(at + kZipEntryBytes + name_length, extra_length), wide)) {
    return member_error(zip, member.name,
                        "has broken extra fields (zip64 values missing or twice)");
  }
  member.size = wide.size;
  member.compressed_size = wide.compressed_size;
  member.header_offset = wide.header_offset;
  CUBIST_RETURN_IF_ERROR(check_entry(member, entry.folder, header->get<std::uint16_t, 34>(), zip));
  return entry;
}

/// Refuses two entries of one name; a folder and a file of one name count as such.
Status check_duplicates(const std::vector<Entry>& entries, const std::string& zip) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(entries.size());
  for (const Entry& entry : entries) {
    std::string_view name = entry.member.name;
    if (entry.folder) name.remove_suffix(1);
    if (!seen.insert(name).second) {
      return member_error(zip, name, "occurs twice; which one is meant is ambiguous");
    }
  }
  return {};
}

/// Sets each member's limit_offset, and refuses members that reach into the next one or the
/// directory.
Status check_overlaps(std::vector<Entry>& entries, std::uint64_t directory_offset,
                      const std::string& zip) {
  std::vector<ZipMember*> by_offset;
  by_offset.reserve(entries.size());
  for (Entry& entry : entries) by_offset.push_back(&entry.member);
  std::sort(by_offset.begin(), by_offset.end(), [](const ZipMember* a, const ZipMember* b) {
    return a->header_offset < b->header_offset;
  });
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    ZipMember& member = *by_offset[i];
    const bool last = i + 1 == by_offset.size();
    member.limit_offset = last ? directory_offset : by_offset[i + 1]->header_offset;
    const std::uint64_t header_bytes = kZipLocalBytes + member.name.size();
    if (member.header_offset > directory_offset ||
        member.limit_offset - member.header_offset < header_bytes ||
        member.limit_offset - member.header_offset - header_bytes < member.compressed_size) {
      return member_error(
          zip, member.name, "(header at byte {}, {} bytes of data) reaches into {}",
          member.header_offset, member.compressed_size,
          last ? "the directory" : "'" + printable_member_name(by_offset[i + 1]->name) + "'");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ZipMember>> parse_zip_directory(std::span<const std::uint8_t> directory,
                                                   std::uint64_t num_entries,
                                                   std::uint64_t directory_offset,
                                                   const std::string& name) {
  const ByteReader reader(directory);
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(num_entries));
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < num_entries; ++i) {
    CUBIST_ASSIGN_OR_RETURN(Entry entry, parse_entry(reader, at, i, name));
    at += entry.entry_bytes;
    entries.push_back(std::move(entry));
  }
  if (at != directory.size()) {
    return fail(StatusCode::kIntegrity,
                "'{}': {} bytes of the zip directory follow its {} entries; the count is wrong",
                name, directory.size() - at, num_entries);
  }
  CUBIST_RETURN_IF_ERROR(check_duplicates(entries, name));
  CUBIST_RETURN_IF_ERROR(check_overlaps(entries, directory_offset, name));

  std::vector<ZipMember> members;
  members.reserve(entries.size());
  for (Entry& entry : entries) {
    if (!entry.folder) members.push_back(std::move(entry.member));
  }
  return members;
}

}  // namespace cubist
