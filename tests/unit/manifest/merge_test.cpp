#include "manifest/merge.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "manifest/parse.h"
#include "sample_manifest.h"
#include "support/catch.h"

namespace cubist {
namespace {

Manifest sample() { return parse_manifest(test::sample_manifest(), "m.json").value(); }

TEST_CASE("equal packs become one, with the sources of both and each kernel once") {
  const Manifest a = sample();
  Manifest b = sample();
  b.packs[0].sources.push_back({Source::Kind::kHttp, "http://other.example/", ""});
  b.packs[0].kernels[1].name = "kernel_c";
  b.packs[0].kernels[1].path = "kernel_c.cubin";
  b.packs[0].kernels[1].sha256.bytes[0] = 1;
  const std::vector<Manifest> both = {a, b};
  const auto merged = merge_manifests(both, "both");
  REQUIRE(merged);
  CHECK(merged->dropped == 1);
  CHECK(merged->manifest.name == "both");
  CHECK(merged->manifest.description == "merged from sample; sample");
  REQUIRE(merged->manifest.packs.size() == 1);
  CHECK(merged->manifest.packs[0].sources.size() == 3);
  CHECK(merged->manifest.packs[0].kernels.size() == 3);
}

TEST_CASE("what a kernel needs of the driver is what it needed before, of two words the higher") {
  Manifest a = sample();
  Manifest b = sample();
  a.packs[0].min_driver = 13000;
  b.packs[0].min_driver = 12080;
  b.packs[0].sources.push_back({Source::Kind::kHttp, "http://other.example/", ""});
  b.packs[0].kernels[1].name = "kernel_c";
  b.packs[0].kernels[1].path = "kernel_c.cubin";
  b.packs[0].kernels[1].sha256.bytes[0] = 1;
  for (const auto& both : {std::vector{a, b}, std::vector{b, a}}) {
    const auto merged = merge_manifests(both, "m");
    if (!merged) FAIL(merged.error().message());
    std::map<std::string, std::int32_t> needs;
    for (const Pack& pack : merged->manifest.packs) {
      CHECK(pack.sources.size() == 3);
      for (const KernelRecord& record : pack.kernels) needs[record.name] = pack.min_driver;
    }
    CHECK(needs == std::map<std::string, std::int32_t>{
                       {"kernel_a", 13000}, {"kernel_b", 13000}, {"kernel_c", 12080}});
    CHECK(merged->dropped == 1);
  }
  const auto merged = merge_manifests(std::vector{a, b}, "m");
  CHECK(merged->manifest.packs.at(0).name == "pack-a");
  CHECK(merged->manifest.packs.at(1).name == "pack-a-driver-12.8");
}

TEST_CASE("a need of the driver that one manifest knows holds where the other does not say") {
  Manifest a = sample();
  const Manifest b = sample();
  a.packs[0].min_driver = 13000;
  for (const auto& both : {std::vector{a, b}, std::vector{b, a}}) {
    const auto merged = merge_manifests(both, "m");
    REQUIRE(merged);
    REQUIRE(merged->manifest.packs.size() == 1);
    CHECK(merged->manifest.packs[0].min_driver == 13000);
  }
}

TEST_CASE("packs of one name and another release are kept apart") {
  const Manifest a = sample();
  Manifest b = sample();
  b.packs[0].version = "2.0";
  b.packs[0].revision = HeuristicRevision::kNone;
  for (KernelRecord& record : b.packs[0].kernels) record.sha256.bytes[31] ^= 1;
  const std::vector<Manifest> both = {a, b};
  const auto merged = merge_manifests(both, "both");
  REQUIRE(merged);
  REQUIRE(merged->manifest.packs.size() == 2);
  CHECK(merged->manifest.packs[0].name == "pack-a");
  CHECK(merged->manifest.packs[1].name == "pack-a-2.0");
  CHECK(merged->dropped == 0);
}

TEST_CASE(
    "packs of one name and version that are not one are refused with what differs and what to do") {
  const Manifest a = sample();
  Manifest b = sample();
  b.packs[0].license = "BSD-3-Clause";
  b.packs[0].param_layout = ParamLayout::kTrtllmGenFmha1280 == a.packs[0].param_layout
                                ? ParamLayout::kCubistDecode1
                                : ParamLayout::kTrtllmGenFmha1280;
  const auto merged = merge_manifests(std::vector{a, b}, "m");
  REQUIRE_FALSE(merged.has_value());
  CHECK(merged.error().code() == StatusCode::kManifestInvalid);
  for (const char* words :
       {"'pack-a'", "license ('", "'BSD-3-Clause'", "param_layout ('", "another name or version"}) {
    CHECK(merged.error().message().find(words) != std::string::npos);
  }
}

TEST_CASE("one path for two artifacts of one release is refused") {
  const Manifest a = sample();
  Manifest b = sample();
  b.packs[0].kernels[0].sha256.bytes[0] = 1;
  const std::vector<Manifest> both = {a, b};
  const auto merged = merge_manifests(both, "both");
  REQUIRE_FALSE(merged);
  CHECK(merged.error().code() == StatusCode::kManifestInvalid);
  CHECK(merged.error().message().find("claimed by") != std::string::npos);
  b.packs[0].min_driver = 13000;  // another pack of the same release and sources
  CHECK_FALSE(merge_manifests(std::vector{a, b}, "both"));
}

TEST_CASE("relative locations are made to stand alone") {
  Manifest manifest = sample();
  manifest.folder = "/somewhere/manifests/";
  manifest.packs[0].sources = {{Source::Kind::kFolder, "../kernels", ""},
                               {Source::Kind::kFolder, "/absolute", ""},
                               {Source::Kind::kZip, "wheel.whl", "x/"},
                               {Source::Kind::kZip, "https://h.example/w.whl", ""},
                               {Source::Kind::kHttp, "https://h.example/", ""}};
  resolve_locations(manifest);
  const std::vector<Source>& sources = manifest.packs[0].sources;
  CHECK(sources[0].location == "/somewhere/kernels");
  CHECK(sources[1].location == "/absolute");
  CHECK(sources[2].location == "/somewhere/manifests/wheel.whl");
  CHECK(sources[2].prefix == "x/");
  CHECK(sources[3].location == "https://h.example/w.whl");
  CHECK(manifest.folder.empty());

  Manifest here = sample();
  here.folder = ".";
  here.packs[0].sources = {{Source::Kind::kFolder, "x", ""}};
  resolve_locations(here);
  CHECK(here.packs[0].sources[0].location == (std::filesystem::current_path() / "x").string());
}

}  // namespace
}  // namespace cubist
