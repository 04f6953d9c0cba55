#include <vector>

#include "cubin/cubin_file.h"
#include "support/byte_writer.h"
#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist {
namespace {

using test::CubinImage;
using test::make_cubin;
using test::patch;
using Kind = SmArch::Kind;

TEST_CASE("architectures are told apart for every generation of tools") {
  struct Case {
    test::SyntheticCubin cubin;
    std::string arch;
    std::string release;
  };
  const std::vector<Case> cases = {
      {{.arch = {80, Kind::kPortable}, .abi_version = 7}, "sm_80", "12.9"},
      {{.arch = {90, Kind::kPortable}, .abi_version = 7}, "sm_90", "12.9"},
      {{.arch = {90, Kind::kSpecific}, .abi_version = 7}, "sm_90a", "12.9"},
      {{.arch = {90, Kind::kPortable}, .release_13 = true}, "sm_90", "13.0"},
      {{.arch = {90, Kind::kSpecific}, .release_13 = true}, "sm_90a", "13.0"},
      {{.arch = {90, Kind::kPortable}, .tool_note = false}, "sm_90", ""},
      {{.arch = {100, Kind::kPortable}}, "sm_100", "12.9"},
      {{.arch = {100, Kind::kFamily}}, "sm_100f", "12.9"},
      {{.arch = {100, Kind::kSpecific}}, "sm_100a", "12.9"},
      {{.arch = {103, Kind::kSpecific}, .tool_note = false}, "sm_103a", ""},
      {{.arch = {103, Kind::kFamily}, .release_13 = true}, "sm_103f", "13.0"},
      {{.arch = {103, Kind::kSpecific}, .release_13 = true}, "sm_103a", "13.0"},
      {{.arch = {120, Kind::kFamily}, .release_13 = true}, "sm_120f", "13.0"},
      {{.arch = {100, Kind::kFamily}, .tool_note = false}, "sm_100|sm_100f", ""},
      {{.arch = {100, Kind::kPortable}, .tool_note = false}, "sm_100|sm_100f", ""},
  };
  for (const Case& one : cases) {
    CAPTURE(one.arch, one.release);
    auto cubin = parse_cubin(make_cubin(one.cubin).bytes, "x.cubin");
    if (!cubin) FAIL(cubin.error().message());
    CHECK(arch_text(*cubin) == one.arch);
    CHECK(cubin->tool_release == one.release);
    CHECK(cubin->arch.sm == one.cubin.arch.sm);
  }
}

TEST_CASE("a tool note that contradicts the flags is not believed") {
  // The note says sm_100f; the flags are changed to sm_103, then to specific.
  CubinImage image = make_cubin();
  patch<std::uint32_t>(image.bytes, 48, 0x06006702);
  CHECK(arch_text(*parse_cubin(image.bytes, "x.cubin")) == "sm_103|sm_103f");
  patch<std::uint32_t>(image.bytes, 48, 0x0600640a);
  CHECK(arch_text(*parse_cubin(image.bytes, "x.cubin")) == "sm_100a");
}

TEST_CASE("notes of another owner or kind say nothing and break nothing") {
  for (const std::size_t field : {0, 8}) {
    CubinImage image = make_cubin();
    patch<std::uint32_t>(image.bytes, image.bytes_of(".note.nv.tkinfo") + field, 7);
    auto cubin = parse_cubin(image.bytes, "x.cubin");
    REQUIRE(cubin);
    CHECK(cubin->tool_release.empty());
    CHECK_FALSE(cubin->arch_is_exact);
  }
}

TEST_CASE("a shorter note says nothing and breaks nothing") {
  CubinImage image = make_cubin();
  patch<std::uint32_t>(image.bytes, image.bytes_of(".note.nv.tkinfo") + 4, 20);
  auto cubin = parse_cubin(image.bytes, "x.cubin");
  REQUIRE(cubin);
  CHECK(cubin->tool_release.empty());
}

TEST_CASE("a release or an architecture that the note's texts lack stays unknown") {
  CubinImage image = make_cubin();
  const std::size_t texts = image.bytes_of(".note.nv.tkinfo") + 24 + 24;
  for (std::size_t i = 7; i < 90; ++i) {
    if (image.bytes[texts + i] == 'r') image.bytes[texts + i] = 'R';
  }
  auto cubin = parse_cubin(image.bytes, "x.cubin");
  REQUIRE(cubin);
  CHECK(cubin->tool_release.empty());
  CHECK_FALSE(cubin->arch_is_exact);
}

}  // namespace
}  // namespace cubist
