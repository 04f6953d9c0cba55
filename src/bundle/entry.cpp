#include "bundle/entry.h"

#include <algorithm>

#include "archive/zip_format.h"
#include "archive/zip_writer.h"
#include "base/byte_reader.h"
#include "bundle/layout.h"

namespace cubist::bundle {
namespace {

/// The member that a kernel's entry must be; its method and CRC are what the entry says.
Result<ZipMember> member_of(std::span<const std::uint8_t> entry, const Kernel& kernel,
                            const std::string& origin) {
  std::string name = kernel_member_name(kernel.sha256);
  const auto header = ByteReader(entry).record<kZipLocalBytes>(0);
  if (!header || entry.size() < kZipLocalBytes + name.size()) {
    return fail(StatusCode::kIntegrity, "'{}': {} bytes are too few for the entry of '{}'", origin,
                entry.size(), name);
  }
  ZipMember member;
  member.name = std::move(name);
  member.compressed_size = entry.size() - kZipLocalBytes - member.name.size();
  member.size = kernel.size_bytes;
  member.limit_offset = entry.size();
  member.crc32 = header->get<std::uint32_t, 14>();
  member.method = header->get<std::uint16_t, 8>();
  return member;
}

}  // namespace

std::uint64_t entry_bytes(const ZipMember& member) {
  return kZipLocalBytes + member.name.size() + member.compressed_size;
}

Status unpack_member(std::span<const std::uint8_t> entry, const ZipMember& member,
                     std::span<std::uint8_t> out, const std::string& origin) {
  const std::vector<std::uint8_t> expected = zip_local_header(member);
  if (entry.size() < expected.size() ||
      !std::equal(expected.begin(), expected.end(), entry.begin())) {
    return fail(StatusCode::kIntegrity,
                "'{}': the header in front of zip member '{}' is not the one that a bundle has "
                "there (its name, sizes, CRC-32, flags or time stamp differ)",
                origin, member.name);
  }
  return unpack_zip_member(member, entry, out, origin);
}

Result<VerifiedCubin> unpack_entry(std::span<const std::uint8_t> entry, const Kernel& kernel,
                                   const std::string& origin) {
  CUBIST_ASSIGN_OR_RETURN(const ZipMember member, member_of(entry, kernel, origin));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(member.size));
  CUBIST_RETURN_IF_ERROR(unpack_member(entry, member, bytes, origin));
  return VerifiedCubin::verify(std::move(bytes), kernel.sha256, kernel.size_bytes,
                               fmt::format("{}:{}", origin, member.name));
}

}  // namespace cubist::bundle
