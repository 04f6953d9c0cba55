#include "bundle/bundle.h"

#include <algorithm>

#include "bundle/layout.h"
#include "made_bundle.h"
#include "support/catch.h"

namespace cubist::bundle {
namespace {

using test::Bytes;
using test::MadeBundle;
using test::make_bundle;

TEST_CASE("what was put into a bundle comes out of it") {
  for (const bool stored : {false, true}) {
    CAPTURE(stored);
    WriteOptions options;
    options.stored = stored;
    const MadeBundle made = make_bundle(options);
    const auto opened = test::open(made.file);
    if (!opened) FAIL(opened.error().message());
    CHECK(opened->description() == made.written.description);
    CHECK(opened->identity() == made.written.identity);
    CHECK(sha256(made.file) == made.written.sha256);
    CHECK(made.file.size() == made.written.file_bytes);
    const Description& description = opened->description();
    REQUIRE(description.manifests.size() == 2);
    CHECK(description.manifests[0].name == "Another-1");
    CHECK_FALSE(description.manifests[0].signature);
    CHECK(opened->read_part(description.manifests[1].text).value() == "{\"a\": 1}\n");
    CHECK(opened->read_part(*description.manifests[1].signature).value() ==
          "untrusted comment: x\nsignature\n");
    CHECK(opened->read_part(*description.license).value() == "Licence text\n");
    CHECK(opened->read_part(*description.notice).value() == "Notice text\n");
    REQUIRE(description.kernels.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto cubin = opened->read_kernel(i);
      if (!cubin) FAIL(cubin.error().message());
      const Bytes& expected = made.kernels.at(description.kernels[i].sha256);
      CHECK(std::equal(expected.begin(), expected.end(), cubin->bytes().begin(),
                       cubin->bytes().end()));
    }
  }
}

TEST_CASE("the same contents make the same bytes in any order and with any number of threads") {
  std::map<Sha256Digest, Bytes> kernels;
  Contents contents = test::made_contents(kernels);
  const MadeBundle first = make_bundle(contents, kernels);
  std::reverse(contents.kernels.begin(), contents.kernels.end());
  std::reverse(contents.manifests.begin(), contents.manifests.end());
  contents.kernels.push_back(contents.kernels.front());
  WriteOptions options;
  options.threads = 3;
  const MadeBundle second = make_bundle(contents, kernels, options);
  CHECK(first.file == second.file);
}

TEST_CASE("the identity of a bundle does not depend on how it is packed") {
  WriteOptions stored;
  stored.stored = true;
  const MadeBundle a = make_bundle();
  const MadeBundle b = make_bundle(stored);
  CHECK(a.file != b.file);
  CHECK(a.written.identity == b.written.identity);
}

TEST_CASE("members lie in the documented order without a gap") {
  const MadeBundle made = make_bundle();
  const auto opened = test::open(made.file);
  REQUIRE(opened);
  std::vector<std::string> names;
  std::uint64_t at = 0;
  for (const ZipMember& member : opened->members()) {
    names.push_back(member.name.substr(0, member.name.find('/')));
    CHECK(member.header_offset == at);
    at = member.limit_offset;
  }
  CHECK(names == std::vector<std::string>{"bundle.json", "manifests", "manifests", "manifests",
                                          "LICENSE", "NOTICE", "sha256", "sha256", "sha256"});
  CHECK(opened->kernels_offset() == opened->members()[6].header_offset);
  CHECK(opened->directory_offset() == at);
}

TEST_CASE("a bundle that reading would refuse is not written") {
  std::map<Sha256Digest, Bytes> kernels;
  const Contents good = test::made_contents(kernels);
  const auto refusal = [&](const Contents& contents) {
    bool wrote = false;
    const auto sink = [&](std::span<const std::uint8_t>) -> Status {
      wrote = true;
      return {};
    };
    const auto written = write_bundle(contents, test::reader_of(kernels), sink);
    REQUIRE_FALSE(written);
    CHECK_FALSE(wrote);
    CHECK(written.error().code() == StatusCode::kInvalidArgument);
    return written.error().message();
  };
  Contents bad = good;
  bad.kernels.clear();
  CHECK_THAT(refusal(bad), Catch::Contains("/kernels: holds no kernel"));
  bad = good;
  bad.name = "../x";
  CHECK_THAT(refusal(bad), Catch::Contains("/name: '../x' is no name"));
  bad = good;
  bad.manifests.push_back({"MADE", "{}", std::nullopt});
  CHECK_THAT(refusal(bad), Catch::Contains("in case alone"));
  bad = good;
  bad.packs[0].version = "\xff";
  CHECK_THAT(refusal(bad), Catch::Contains("no UTF-8"));
}

TEST_CASE("a kernel that cannot be read ends the writing with its error") {
  std::map<Sha256Digest, Bytes> kernels;
  const Contents contents = test::made_contents(kernels);
  const auto reader = [](const Kernel& kernel) -> Result<VerifiedCubin> {
    return fail(StatusCode::kOffline, "{} is not here", kernel.sha256.hex().substr(0, 4));
  };
  WriteOptions options;
  options.threads = 2;
  const auto written = write_bundle(
      contents, reader, [](std::span<const std::uint8_t>) { return Status(); }, options);
  REQUIRE_FALSE(written);
  CHECK(written.error().code() == StatusCode::kOffline);
}

TEST_CASE("writing stops when it is told to") {
  std::map<Sha256Digest, Bytes> kernels;
  const Contents contents = test::made_contents(kernels);
  const std::atomic<bool> cancel = true;
  WriteOptions options;
  options.cancel = &cancel;
  const auto written = write_bundle(
      contents, test::reader_of(kernels), [](std::span<const std::uint8_t>) { return Status(); },
      options);
  REQUIRE_FALSE(written);
  CHECK(written.error().code() == StatusCode::kInterrupted);
}

}  // namespace
}  // namespace cubist::bundle
