#include "bundle/entry.h"

#include <algorithm>

#include "made_bundle.h"
#include "support/catch.h"

namespace cubist::bundle {
namespace {

using test::Bytes;
using test::MadeBundle;

/// The entry of a kernel, cut out of the file.
Bytes entry_of(const MadeBundle& made, std::size_t kernel) {
  const auto opened = test::open(made.file);
  REQUIRE(opened);
  const ZipMember& member = opened->kernel_member(kernel);
  CHECK(member.limit_offset - member.header_offset == entry_bytes(member));
  return {made.file.begin() + static_cast<std::ptrdiff_t>(member.header_offset),
          made.file.begin() + static_cast<std::ptrdiff_t>(member.limit_offset)};
}

TEST_CASE("a kernel is unpacked from its entry alone") {
  for (const bool stored : {false, true}) {
    WriteOptions options;
    options.stored = stored;
    const MadeBundle made = test::make_bundle(options);
    const std::vector<Kernel>& kernels = made.written.description.kernels;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const auto cubin = unpack_entry(entry_of(made, i), kernels[i], "shard");
      if (!cubin) FAIL(cubin.error().message());
      CHECK(cubin->sha256() == kernels[i].sha256);
    }
  }
}

TEST_CASE("an entry with any byte changed, missing or added is refused") {
  const MadeBundle made = test::make_bundle();
  const Kernel kernel = made.written.description.kernels[0];
  const Bytes good = entry_of(made, 0);
  const auto refused = [&](const Bytes& entry) {
    const auto cubin = unpack_entry(entry, kernel, "shard");
    REQUIRE_FALSE(cubin);
    CHECK(cubin.error().code() == StatusCode::kIntegrity);
    CHECK_THAT(cubin.error().message(), Catch::Contains("shard"));
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    CAPTURE(i);
    Bytes entry = good;
    entry[i] ^= 0x20;
    refused(entry);
    entry.resize(i);
    refused(entry);
  }
  Bytes longer = good;
  longer.push_back(0);
  refused(longer);
}

TEST_CASE("an entry of another kernel is refused") {
  const MadeBundle made = test::make_bundle();
  const auto cubin = unpack_entry(entry_of(made, 0), made.written.description.kernels[1], "shard");
  REQUIRE_FALSE(cubin);
  CHECK(cubin.error().code() == StatusCode::kIntegrity);
}

}  // namespace
}  // namespace cubist::bundle
