#include "manifest/diff.h"

#include <algorithm>
#include <string>

#include "manifest/parse.h"
#include "sample_manifest.h"
#include "support/catch.h"

namespace cubist {
namespace {

Manifest sample() { return parse_manifest(test::sample_manifest(), "m.json").value(); }

TEST_CASE("a manifest does not differ from itself, whatever the order") {
  const Manifest a = sample();
  Manifest b = sample();
  std::reverse(b.packs[0].kernels.begin(), b.packs[0].kernels.end());
  const ManifestDiff diff = diff_manifests(a, b);
  CHECK(diff.empty());
  CHECK(diff.unchanged == 2);
}

TEST_CASE("added and removed kernels are told apart from changed ones") {
  const Manifest a = sample();
  Manifest b = sample();
  std::vector<KernelRecord>& kernels = b.packs[0].kernels;
  kernels[0].sha256.bytes[0] = 0;
  kernels[1].traits.smem = 77;
  kernels.push_back(a.packs[0].kernels[0]);
  kernels[2].name = "kernel_c";
  kernels[2].sha256.bytes[0] = 1;
  const ManifestDiff diff = diff_manifests(a, b);
  CHECK(diff.unchanged == 0);
  CHECK(diff.removed.empty());
  REQUIRE(diff.added.size() == 1);
  CHECK(diff.added[0].record->name == "kernel_c");
  REQUIRE(diff.other_bytes.size() == 1);
  CHECK(diff.other_bytes[0].before.record == &a.packs[0].kernels[0]);
  CHECK(diff.other_bytes[0].after.record == &kernels[0]);
  REQUIRE(diff.other_traits.size() == 1);
  CHECK(diff.other_traits[0].after.record->name == "kernel_b");
  CHECK(trait_differences(diff.other_traits[0].before.record->traits,
                          diff.other_traits[0].after.record->traits) == "smem 0 -> 77");

  const ManifestDiff back = diff_manifests(b, a);
  CHECK(back.added.empty());
  REQUIRE(back.removed.size() == 1);
  CHECK(back.removed[0].record->name == "kernel_c");
}

TEST_CASE("another need of the driver is a difference") {
  Manifest a = sample();
  Manifest b = sample();
  b.packs[0].min_driver = 13000;
  b.packs[0].kernels[1].traits.smem = 77;
  const ManifestDiff diff = diff_manifests(a, b);
  CHECK_FALSE(diff.empty());
  CHECK(diff.unchanged == 0);
  REQUIRE(diff.other_min_driver.size() == 1);
  CHECK(min_driver_difference(diff.other_min_driver[0]) == "min_driver none -> 13.0");
  REQUIRE(diff.other_traits.size() == 1);
  CHECK(min_driver_difference(diff.other_traits[0]) == "min_driver none -> 13.0");
  a.packs[0].min_driver = 13000;
  CHECK(diff_manifests(a, b).other_min_driver.empty());
}

TEST_CASE("an empty manifest has lost everything") {
  const Manifest a = sample();
  Manifest b = sample();
  b.packs.clear();
  CHECK(diff_manifests(a, b).removed.size() == 2);
  CHECK(diff_manifests(b, a).added.size() == 2);
  CHECK(diff_manifests(b, b).empty());
}

TEST_CASE("rows that share a name and a file are paired one to one") {
  Manifest a = sample();
  KernelRecord second = a.packs[0].kernels[0];
  second.traits.smem = 1;
  a.packs[0].kernels.push_back(second);
  Manifest b = a;
  b.packs[0].kernels[2].traits.smem = 2;
  const ManifestDiff diff = diff_manifests(a, b);
  CHECK(diff.unchanged == 2);
  REQUIRE(diff.other_traits.size() == 1);
  CHECK(diff.other_traits[0].before.record->traits.smem == 1);
  CHECK(diff.added.empty());
  CHECK(diff.removed.empty());
}

TEST_CASE("differing traits are named with both values") {
  KernelTraits a;
  KernelTraits b;
  b.arch = {90, SmArch::Kind::kSpecific};
  b.mask_type = MaskType::kCausal;
  b.two_cta_mma = true;
  a.arch = {100, SmArch::Kind::kFamily};
  CHECK(trait_differences(a, b) ==
        "arch sm_100f -> sm_90a, mask_type dense -> causal, two_cta_mma false -> true");
  CHECK(trait_differences(a, a).empty());
}

}  // namespace
}  // namespace cubist
