#include "bundle/description.h"

#include "bundle/layout.h"
#include "support/catch.h"

namespace cubist::bundle {
namespace {

const std::string kHexA(64, 'a');
const std::string kHexB(64, 'b');

std::string with(const std::string& manifests, const std::string& kernels,
                 const std::string& more = "") {
  return R"({"schema":"cubist.bundle","schema_version":1,"name":"n","provenance":{"tool":"t","packs":[]},)" +
         more + R"("manifests":[)" + manifests + R"(],"kernels":[)" + kernels + "]}";
}

std::string kernel(const std::string& hex, const std::string& size = "5") {
  return R"({"sha256":")" + hex + R"(","size":)" + size + "}";
}

std::string manifest(const std::string& name) {
  return R"({"name":")" + name + R"(","sha256":")" + kHexA + R"(","size":5})";
}

std::string refusal(const std::string& text) {
  const auto parsed = parse_description(text, "b.zip");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(parsed.error().message(), Catch::StartsWith("b.zip: bundle.json"));
  return parsed.error().message();
}

TEST_CASE("a description reads back as it was written") {
  Description description;
  description.name = "set-1.0";
  description.tool = "cubist 0.1.0";
  description.packs = {{"p", "1", "MIT", {"https://a/b", "\"quoted\""}}, {"q", "", "", {}}};
  ManifestPart part;
  part.name = "m";
  part.text = {manifest_member_name("m"), *Sha256Digest::parse(kHexA), 7};
  part.signature = Part{signature_member_name("m"), *Sha256Digest::parse(kHexB), 8};
  description.manifests = {part};
  description.license = Part{"LICENSE", *Sha256Digest::parse(kHexB), 9};
  description.kernels = {{*Sha256Digest::parse(kHexA), 1}, {*Sha256Digest::parse(kHexB), 2}};
  const std::string text = write_description(description);
  const auto parsed = parse_description(text, "b.zip");
  if (!parsed) FAIL(parsed.error().message());
  CHECK(*parsed == description);
  CHECK(write_description(*parsed) == text);
  CHECK(parsed->kernel_bytes() == 3);
}

TEST_CASE("a description says what is wrong with it and where") {
  CHECK_THAT(refusal("{"), Catch::Contains("line 1"));
  CHECK_THAT(refusal("[]"), Catch::Contains("bundle.json"));
  CHECK_THAT(refusal("{}"), Catch::Contains("schema"));
  CHECK_THAT(refusal(with("", "")), Catch::Contains("/kernels: holds no kernel"));
  CHECK_THAT(refusal(with("", kernel("xyz"))), Catch::Contains("/kernels/0/sha256"));
  CHECK_THAT(refusal(with("", kernel(std::string(64, 'A')))), Catch::Contains("lower case"));
  CHECK_THAT(refusal(with("", kernel(kHexA, "0"))), Catch::Contains("/kernels/0/size"));
  CHECK_THAT(refusal(with("", kernel(kHexA, "-1"))), Catch::Contains("/kernels/0/size"));
  CHECK_THAT(refusal(with("", kernel(kHexA, "1e30"))), Catch::Contains("/kernels/0/size"));
  CHECK_THAT(refusal(with("", kernel(kHexA, "2000000000"))), Catch::Contains("/kernels/0/size"));
  CHECK_THAT(refusal(with("", kernel(kHexB) + "," + kernel(kHexA))),
             Catch::Contains("/kernels/1: kernels are not sorted"));
  CHECK_THAT(refusal(with("", kernel(kHexA) + "," + kernel(kHexA))), Catch::Contains("/kernels/1"));
  CHECK_THAT(refusal(with("", kernel(kHexA), R"("extra":1,)")), Catch::Contains("extra"));
  std::string newer = with("", kernel(kHexA));
  newer.replace(newer.find("_version\":1"), 11, "_version\":2");
  CHECK_THAT(refusal(newer), Catch::Contains("a newer cubist may read it"));
}

TEST_CASE("names of manifests are held to a list of characters") {
  for (const char* name : {"", "..", "../a", "a/b", "/a", "a\\\\b", ".a", "-a", "a b", "a.json",
                           "a\\u0000b", "a\\u202eb", "\\u00e4"}) {
    CAPTURE(name);
    CHECK_THAT(refusal(with(manifest(name), kernel(kHexA))),
               Catch::Contains("/manifests/0/name") && Catch::Contains("no name"));
  }
  CHECK_THAT(refusal(with(manifest(std::string(201, 'a')), kernel(kHexA))),
             Catch::Contains("no name"));
  CHECK(parse_description(with(manifest("Flash_infer-0.6+x$"), kernel(kHexA)), "b.zip"));
}

TEST_CASE("two manifests whose names differ in case alone are refused") {
  CHECK_THAT(refusal(with(manifest("A") + "," + manifest("a"), kernel(kHexA))),
             Catch::Contains("/manifests/1/name") && Catch::Contains("in case alone"));
  CHECK_THAT(refusal(with(manifest("a") + "," + manifest("a"), kernel(kHexA))),
             Catch::Contains("occurs twice"));
  CHECK_THAT(refusal(with(manifest("b") + "," + manifest("a"), kernel(kHexA))),
             Catch::Contains("not sorted"));
}

}  // namespace
}  // namespace cubist::bundle
