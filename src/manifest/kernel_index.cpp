#include "manifest/kernel_index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/byte_reader.h"
#include "base/checksum.h"
#include "manifest/index_reader.h"
#include "manifest/index_rows.h"

// All numbers little-endian; a text is its offset (4) and length (4), and a NUL follows its bytes.
//
//     0   8  "CUBISTKI"
//     8   4  format, kFormat
//    12   4  trait members and bytes of a kernel's row: differ between builds that differ in them
//    16   8  bytes of the whole file
//    24   8  checksum64 of all from 32 on
//    32  32  SHA-256 of the manifest's JSON
//    64  32  its file: size, inode, mtime, ctime (8 each)
//    96  32  version of the writer, NULs behind
//   128   8  name          136  8  description      144  8  expires      152  8  serial
//   160   4  packs         164  4  sources          168  4  kernels      172  4  0
//   176      packs         48 bytes each: index_rows.h
//            sources       24 bytes each, those of the first pack first
//            kernels       kKernelRowBytes each, those of the first pack first
//            texts

namespace cubist {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {'C', 'U', 'B', 'I', 'S', 'T', 'K', 'I'};
// One more whenever a row changes, or a rule of manifests gets stricter.
constexpr std::uint32_t kFormat = 4;
constexpr std::uint32_t kLayout = kNumTraitMembers << 16 | kKernelRowBytes;
constexpr std::size_t kVersionBytes = 32;

std::array<std::uint8_t, kVersionBytes> writer_version() {
  constexpr std::string_view kVersion = CUBIST_INDEX_WRITER;
  std::array<std::uint8_t, kVersionBytes> field{};
  std::memcpy(field.data(), kVersion.data(), std::min(kVersion.size(), kVersionBytes));
  return field;
}

[[nodiscard]] tl::unexpected<Error> broken(std::string_view what) {
  return tl::unexpected<Error>(Error(StatusCode::kIntegrity, std::string(what)));
}

std::size_t count_sources(const Manifest& manifest) {
  std::size_t count = 0;
  for (const Pack& pack : manifest.packs) count += pack.sources.size();
  return count;
}

std::size_t count_kernels(const Manifest& manifest) {
  std::size_t count = 0;
  for (const Pack& pack : manifest.packs) count += pack.kernels.size();
  return count;
}

}  // namespace

Result<std::vector<std::uint8_t>> write_kernel_index(const Manifest& manifest,
                                                     const KernelIndexHead& head) {
  const std::size_t sources = count_sources(manifest);
  const std::size_t kernels = count_kernels(manifest);
  RowWriter out(kIndexHeadBytes + manifest.packs.size() * kPackRowBytes +
                sources * kSourceRowBytes + kernels * kKernelRowBytes);
  out.bytes(kMagic).number(kFormat).number(kLayout);
  out.number(std::uint64_t{0}).number(std::uint64_t{0});  // seal_kernel_index fills these
  out.bytes(head.manifest_sha256.bytes);
  out.number(head.file.size_bytes).number(head.file.inode);
  out.number(head.file.mtime_ns).number(head.file.ctime_ns);
  out.bytes(writer_version());
  out.text(manifest.name).text(manifest.description).text(manifest.expires);
  out.number(manifest.serial);
  out.number(static_cast<std::uint32_t>(manifest.packs.size()));
  out.number(static_cast<std::uint32_t>(sources)).number(static_cast<std::uint32_t>(kernels));
  out.number(std::uint32_t{0});
  for (const Pack& pack : manifest.packs) write_pack_row(out, pack);
  for (const Pack& pack : manifest.packs) {
    for (const Source& source : pack.sources) write_source_row(out, source);
  }
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& record : pack.kernels) write_kernel_row(out, record);
  }
  std::vector<std::uint8_t> bytes = out.take();
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail(StatusCode::kInvalidArgument, "an index of {} bytes; at most 4 GB are possible",
                bytes.size());
  }
  seal_kernel_index(bytes);
  return bytes;
}

void seal_kernel_index(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < kIndexHeadBytes) return;
  const std::uint64_t size = bytes.size();
  const std::uint64_t checksum = checksum64(std::span(bytes).subspan(kIndexCheckedFrom));
  std::memcpy(bytes.data() + 16, &size, sizeof(size));
  std::memcpy(bytes.data() + kIndexChecksumAt, &checksum, sizeof(checksum));
}

Result<KernelIndexHead> read_kernel_index_head(std::span<const std::uint8_t> bytes) {
  const auto head = ByteReader(bytes).record<kIndexHeadBytes>(0);
  if (!head || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return broken("it is no index of a manifest");
  }
  const auto version = writer_version();
  if (head->get<std::uint32_t, 8>() != kFormat || head->get<std::uint32_t, 12>() != kLayout ||
      !std::equal(version.begin(), version.end(), bytes.begin() + 96)) {
    return broken("it is of another version of cubist");
  }
  if (head->get<std::uint64_t, 16>() != bytes.size()) return broken("it has another size");
  KernelIndexHead found;
  std::copy_n(bytes.begin() + 32, 32, found.manifest_sha256.bytes.begin());
  found.file = {head->get<std::uint64_t, 64>(), head->get<std::uint64_t, 72>(),
                static_cast<std::int64_t>(head->get<std::uint64_t, 80>()),
                static_cast<std::int64_t>(head->get<std::uint64_t, 88>())};
  return found;
}

Result<Manifest> read_kernel_index(std::span<const std::uint8_t> bytes, Lender lender) {
  const auto head = read_kernel_index_head(bytes);
  if (!head) return tl::unexpected<Error>(head.error());
  if (bytes.back() != 0) return broken("its last text has no end");
  return IndexReader(bytes, std::move(lender)).read();
}

}  // namespace cubist
