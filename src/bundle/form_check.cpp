#include "bundle/form_check.h"

#include <algorithm>

#include "archive/member_name.h"
#include "archive/zip_format.h"
#include "archive/zip_writer.h"
#include "base/byte_reader.h"
#include "bundle/entry.h"

namespace cubist::bundle {
namespace {

constexpr std::string_view kAdvice =
    "a bundle is changed by making it anew with 'cubist bundle create'";

std::string quoted(const std::string& name) { return "'" + printable_member_name(name) + "'"; }

/// The members lie one behind the other in the directory's order, from byte 0 on.
Status check_places(const std::string& file, const std::vector<ZipMember>& members) {
  std::uint64_t at = 0;
  for (const ZipMember& member : members) {
    if (member.header_offset != at) {
      return fail(StatusCode::kIntegrity, "'{}': zip member {} begins at byte {}, not {}: {}; {}",
                  file, quoted(member.name), member.header_offset, at,
                  member.header_offset > at ? "the bytes before it belong to no member, or to a "
                                              "folder"
                                            : "members are not in the directory's order",
                  kAdvice);
    }
    at += entry_bytes(member);
    if (member.limit_offset != at) {
      return fail(StatusCode::kIntegrity,
                  "'{}': bytes {} to {} behind zip member {} belong to no member, or to a folder; "
                  "{}",
                  file, at, member.limit_offset, quoted(member.name), kAdvice);
    }
  }
  return {};
}

/// What is odd about an entry that differs from the one its member should have.
std::string oddity(std::span<const std::uint8_t> entry) {
  const auto header = ByteReader(entry).record<kZipEntryBytes>(0);
  if (!header) return "has a broken directory entry";
  const bool unix_mode = header->get<std::uint16_t, 4>() >> 8 == 3;
  constexpr std::uint32_t kTypeBits = 0170000;
  switch (unix_mode ? header->get<std::uint32_t, 38>() >> 16 & kTypeBits : 0) {
    case 0120000:
      return "is a symbolic link";
    case 0040000:
      return "is a folder";
    case 0060000:
    case 0020000:
      return "is a device";
    case 0010000:
      return "is a FIFO";
    case 0140000:
      return "is a socket";
    default:
      return "has a time stamp, mode, comment or extra field that no bundle has";
  }
}

/// The directory and what follows it, against the bytes that ZipWriter would put there.
Status check_directory(const std::string& file, const std::vector<ZipMember>& members,
                       std::span<const std::uint8_t> found, std::uint64_t directory_offset) {
  if (ByteReader(found).read<std::uint32_t>(0) != kZipEntrySignature) {
    return fail(StatusCode::kIntegrity,
                "'{}': the bytes from {} on, behind the last member, belong to no member, or to a "
                "folder; {}",
                file, directory_offset, kAdvice);
  }
  std::size_t at = 0;
  for (const ZipMember& member : members) {
    const std::vector<std::uint8_t> entry = zip_directory_entry(member);
    const auto rest = found.subspan(at);
    if (rest.size() < entry.size() || !std::equal(entry.begin(), entry.end(), rest.begin())) {
      return fail(StatusCode::kIntegrity, "'{}': zip member {} {}; {}", file, quoted(member.name),
                  oddity(rest), kAdvice);
    }
    at += entry.size();
  }
  const std::vector<std::uint8_t> end = zip_end_records(members.size(), directory_offset, at);
  const auto rest = found.subspan(at);
  if (!std::equal(end.begin(), end.end(), rest.begin(), rest.end())) {
    return fail(StatusCode::kIntegrity,
                "'{}': {} bytes follow the zip directory's files, where a bundle ends with {} of "
                "its own: a folder, a comment, or something that was put behind; {}",
                file, rest.size(), end.size(), kAdvice);
  }
  return {};
}

}  // namespace

Status check_form(RandomAccess& file, const std::vector<ZipMember>& members) {
  CUBIST_RETURN_IF_ERROR(check_places(file.name(), members));
  const std::uint64_t directory_offset = members.empty() ? 0 : members.back().limit_offset;
  std::vector<std::uint8_t> rest(static_cast<std::size_t>(file.size() - directory_offset));
  CUBIST_RETURN_IF_ERROR(file.read(directory_offset, rest));
  return check_directory(file.name(), members, rest, directory_offset);
}

}  // namespace cubist::bundle
