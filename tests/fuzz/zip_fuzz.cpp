#include <span>

#include "archive/member_name.h"
#include "archive/zip.h"
#include "check.h"

namespace cubist {
namespace {

constexpr std::uint64_t kMaxMemberBytes = 1 << 16;

void check_member(const ZipArchive& zip, const ZipMember& member, std::size_t size) {
  FUZZ_CHECK(zip.find(member.name) == &member);  // names are unique
  FUZZ_CHECK(unsafe_member_name(member.name).empty());
  const ZipArchive::Extent extent = zip.extent(member);
  FUZZ_CHECK(extent.offset <= size && extent.length <= size - extent.offset);
  const auto bytes = zip.read(member, kMaxMemberBytes);
  if (!bytes) {
    FUZZ_CHECK(bytes.error().code() == StatusCode::kIntegrity);
    return;
  }
  FUZZ_CHECK(bytes->size() == member.size && bytes->size() <= kMaxMemberBytes);
}

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto zip = cubist::ZipArchive::open(cubist::memory_access("fuzz.zip", {data, size}));
  if (!zip) {
    FUZZ_CHECK(zip.error().code() == cubist::StatusCode::kIntegrity);
    return 0;
  }
  for (const cubist::ZipMember& member : zip->members()) cubist::check_member(*zip, member, size);
  return 0;
}
