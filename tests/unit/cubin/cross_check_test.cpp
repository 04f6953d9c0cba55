#include "cubin/cross_check.h"

#include <functional>

#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist {
namespace {

using Kind = SmArch::Kind;

CubinFile file_of(SmArch arch, bool tool_note = true) {
  test::SyntheticKernel kernel;
  kernel.name = "fmha";
  kernel.smem = 100'000;
  kernel.two_cta_mma = false;
  auto cubin = parse_cubin(
      test::make_cubin({.arch = arch, .tool_note = tool_note, .kernels = {kernel}}).bytes,
      "x.cubin");
  if (!cubin) FAIL(cubin.error().message());
  return std::move(*cubin);
}

KernelRecord record_of(SmArch arch) {
  KernelRecord record;
  record.name = "fmha";
  record.traits.arch = arch;
  record.traits.threads = 512;
  record.traits.smem = 100'000;
  return record;
}

constexpr SmArch kFamily{100, Kind::kFamily};

TEST_CASE("a cubin that is what its record says disagrees in nothing") {
  CHECK(cross_check(file_of(kFamily), record_of(kFamily), ParamLayout::kTrtllmGenFmha1280).empty());
}

TEST_CASE("each wrong field is reported with both values") {
  struct Case {
    std::function<void(KernelRecord&)> lie;
    Disagreement expected;
  };
  const std::vector<Case> cases = {
      {[](KernelRecord& r) { r.traits.threads = 384; }, {"threads", "384", "512"}},
      {[](KernelRecord& r) { r.traits.smem = 1; }, {"smem", "1", "100000"}},
      {[](KernelRecord& r) { r.traits.two_cta_mma = true; }, {"two_cta_mma", "true", "false"}},
      {[](KernelRecord& r) { r.traits.arch.sm = 103; }, {"arch", "sm_103f", "sm_100f"}},
      {[](KernelRecord& r) { r.name = "gemm"; }, {"name", "gemm", "fmha"}},
  };
  for (const Case& one : cases) {
    KernelRecord record = record_of(kFamily);
    one.lie(record);
    const auto found = cross_check(file_of(kFamily), record, ParamLayout::kTrtllmGenFmha1280);
    REQUIRE(found.size() == 1);
    CHECK(found[0] == one.expected);
  }
  const auto found =
      cross_check(file_of(kFamily), record_of(kFamily), ParamLayout::kTrtllmGenFmha1152);
  REQUIRE(found.size() == 1);
  CHECK(to_string(found[0]) == "param_bytes: the manifest says 1152, the cubin 1280");
}

TEST_CASE("family, specific and plain are held against each other as far as the file tells") {
  const SmArch specific{100, Kind::kSpecific};
  const SmArch plain{100, Kind::kPortable};
  struct Case {
    CubinFile file;
    SmArch record;
    bool agrees;
  };
  const std::vector<Case> cases = {
      {file_of(specific), specific, true},
      {file_of(specific), kFamily, false},
      {file_of(specific, false), kFamily, false},
      {file_of(kFamily), specific, false},
      {file_of(kFamily), plain, false},
      {file_of(plain), kFamily, false},
      {file_of(kFamily, false), kFamily, true},
      {file_of(kFamily, false), plain, true},
      {file_of(kFamily, false), specific, false},
      {file_of(kFamily, false), SmArch{103, Kind::kFamily}, false},
  };
  for (const Case& one : cases) {
    CAPTURE(arch_text(one.file), to_string(one.record));
    CHECK(cross_check(one.file, record_of(one.record), ParamLayout::kTrtllmGenFmha1280).empty() ==
          one.agrees);
  }
}

TEST_CASE("what a file does not say is not compared") {
  test::SyntheticKernel kernel;
  kernel.name = "fmha";
  kernel.threads = {0, 0, 0};
  auto cubin = parse_cubin(test::make_cubin({.kernels = {kernel}}).bytes, "x.cubin");
  REQUIRE(cubin);
  KernelRecord record = record_of(kFamily);
  record.traits.threads = 96;
  record.traits.smem = 7;
  record.traits.two_cta_mma = true;
  CHECK(cross_check(*cubin, record, ParamLayout::kTrtllmGenFmha1280).empty());
}

TEST_CASE("a file of several kernels is matched by name") {
  test::SyntheticKernel other;
  other.name = "other";
  other.threads = {64, 1, 1};
  test::SyntheticKernel fmha;
  fmha.name = "fmha";
  auto cubin = parse_cubin(test::make_cubin({.kernels = {other, fmha}}).bytes, "x.cubin");
  REQUIRE(cubin);
  CHECK(cross_check(*cubin, record_of(kFamily), ParamLayout::kTrtllmGenFmha1280).empty());
  KernelRecord record = record_of(kFamily);
  record.name = "third";
  CHECK(cross_check(*cubin, record, ParamLayout::kTrtllmGenFmha1280)[0].cubin == "other, fmha");
}

}  // namespace
}  // namespace cubist
