#include <algorithm>
#include <span>
#include <string_view>

#include "archive/zip_writer.h"
#include "bundle/bundle.h"
#include "bundle/check_manifests.h"
#include "bundle/entry.h"
#include "bundle/layout.h"
#include "check.h"
#include "registry/stored_bundle.h"

// The first byte says what the others are: a bundle file, a bundle.json, a kernel's entry, or the
// members of a zip whose records are right ("name \n contents 0xff" each), so that what is behind
// the zip's own checks is reached too.

namespace cubist::bundle {
namespace {

using Bytes = std::span<const std::uint8_t>;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_description(Bytes bytes) {
  const auto parsed = parse_description(text_of(bytes), "fuzz");
  if (!parsed) {
    FUZZ_CHECK(parsed.error().code() == StatusCode::kIntegrity);
    return;
  }
  for (const ManifestPart& manifest : parsed->manifests) {
    FUZZ_CHECK(manifest.name.find('/') == std::string::npos && manifest.name.front() != '.');
  }
  FUZZ_CHECK(std::is_sorted(parsed->kernels.begin(), parsed->kernels.end()));
  const auto again = parse_description(write_description(*parsed), "fuzz");
  FUZZ_CHECK(again && *again == *parsed);
}

void check_members(const Bundle& bundle, std::size_t file_bytes) {
  std::uint64_t at = 0;
  for (const ZipMember& member : bundle.members()) {
    FUZZ_CHECK(member.header_offset == at);  // no byte between members
    at = member.limit_offset;
  }
  FUZZ_CHECK(at == bundle.directory_offset() && at < file_bytes);
  for (std::size_t i = 0; i < bundle.description().kernels.size(); ++i) {
    const Kernel& kernel = bundle.description().kernels[i];
    const auto cubin = bundle.read_kernel(i);
    if (cubin) {
      FUZZ_CHECK(cubin->bytes().size() == kernel.size_bytes &&
                 sha256(cubin->bytes()) == kernel.sha256);
    } else {
      FUZZ_CHECK(cubin.error().code() == StatusCode::kIntegrity);
    }
  }
  const auto manifests = check_manifests(bundle, {});
  if (manifests) {
    FUZZ_CHECK(manifests->size() == bundle.description().manifests.size());
  } else {
    FUZZ_CHECK(manifests.error().code() == StatusCode::kIntegrity ||
               manifests.error().code() == StatusCode::kManifestInvalid);
  }
}

/// As a store serves from it: no form is asked for, and whatever its directory says, no wrong byte.
void check_stored(Bytes bytes) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const auto stored = StoredBundle::read_directory(memory_access("fuzz.zip", bytes));
  if (!stored) {
    FUZZ_CHECK(stored.error().code() == StatusCode::kIntegrity);
    return;
  }
  for (const StoredBundle::Kernel& kernel : (*stored)->kernels()) {
    const StoredBundle::Kernel* found = (*stored)->find(kernel.sha256);
    FUZZ_CHECK(found != nullptr && found->sha256 == kernel.sha256);
    if (kernel.size_bytes > kMostBytes) continue;
    const auto cubin = (*stored)->open_verified(kernel, kernel.size_bytes);
    if (cubin) {
      FUZZ_CHECK(cubin->bytes().size() == kernel.size_bytes &&
                 sha256(cubin->bytes()) == kernel.sha256);
    } else {
      FUZZ_CHECK(cubin.error().code() == StatusCode::kIntegrity);
    }
  }
}

void check_file(Bytes bytes) {
  check_stored(bytes);
  const auto bundle = Bundle::open(memory_access("fuzz.zip", bytes));
  if (bundle) {
    check_members(*bundle, bytes.size());
  } else {
    FUZZ_CHECK(bundle.error().code() == StatusCode::kIntegrity);
  }
}

void check_entry(Bytes bytes) {
  constexpr std::uint64_t kMostBytes = 4096;
  if (bytes.empty()) return;
  const Kernel kernel{sha256({}), bytes.front() * kMostBytes / 255};
  const auto cubin = unpack_entry(bytes.subspan(1), kernel, "fuzz");
  if (cubin) {
    FUZZ_CHECK(cubin->bytes().empty());
  } else {
    FUZZ_CHECK(cubin.error().code() == StatusCode::kIntegrity);
  }
}

void check_built(Bytes bytes) {
  std::vector<std::uint8_t> file;
  ZipWriter writer([&](Bytes part) -> Status {
    file.insert(file.end(), part.begin(), part.end());
    return {};
  });
  while (!bytes.empty()) {
    const auto end = std::find(bytes.begin(), bytes.end(), 0xff);
    const auto name_end = std::find(bytes.begin(), end, '\n');
    const auto begin = name_end == end ? end : name_end + 1;
    FUZZ_CHECK(writer.add(std::string(bytes.begin(), name_end),
                          pack_member(std::vector<std::uint8_t>(begin, end), true)));
    bytes =
        bytes.subspan(static_cast<std::size_t>(end - bytes.begin()) + (end != bytes.end() ? 1 : 0));
  }
  FUZZ_CHECK(writer.finish());
  check_file(file);
}

}  // namespace
}  // namespace cubist::bundle

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubist::bundle;
  if (size == 0) return 0;
  const Bytes rest(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      check_file(rest);
      break;
    case 1:
      check_description(rest);
      break;
    case 2:
      check_entry(rest);
      break;
    default:
      check_built(rest);
  }
  return 0;
}
