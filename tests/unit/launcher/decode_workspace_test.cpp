#include "launcher/decode_workspace.h"

#include "support/catch.h"

using namespace cubist;
using launcher::decode_workspace;

namespace {

struct Example {
  Example() {
    record.traits.tile_q = 32;
    record.traits.head_dim_vo = 64;
    plan.record = &record;
    plan.num_ctas_q = 3;
    plan.num_ctas_kv = 5;
    plan.grid = {15, 8, 7};
  }
  KernelRecord record;
  LaunchPlan plan;
};

}  // namespace

TEST_CASE("nothing is needed where one CTA serves a sequence") {
  Example example;
  example.plan.num_ctas_kv = 1;
  CHECK(decode_workspace(example.plan)->size == 0);
}

TEST_CASE("counters, statistics and partial outputs lie one behind the other, aligned") {
  const Example example;
  const auto workspace = decode_workspace(example.plan);
  REQUIRE(workspace.has_value());
  const std::uint64_t rows = 3 * 8 * 7 * 5 * 32;
  CHECK(workspace->counters_size == 65536);
  CHECK(workspace->partial_stats_offset == 65536);
  CHECK(workspace->partial_o_offset == 65536 + rows * 8);
  CHECK(workspace->size == 65536 + rows * 8 + rows * 64 * 4);
  CHECK(workspace->partial_stats_offset % launcher::kWorkspaceAlignment == 0);
  CHECK(workspace->partial_o_offset % launcher::kWorkspaceAlignment == 0);
}

TEST_CASE("the counters' piece has one size up to 16,384 tiles and grows beyond") {
  Example example;
  example.plan.num_ctas_q = 1;
  example.plan.grid = {5, 128, 128};
  CHECK(decode_workspace(example.plan)->counters_size == 65536);
  example.plan.grid = {5, 128, 129};
  CHECK(decode_workspace(example.plan)->counters_size == 128 * 129 * 4);
}

TEST_CASE("a persistent kernel has two parts a CTA, and a counter for each sequence and 64 rows") {
  Example example;
  example.record.traits.scheduler = TileScheduler::kPersistent;
  example.record.traits.tile_q = 128;
  example.plan.batch = 7;
  example.plan.grid = {24, 5, 1};
  const auto workspace = decode_workspace(example.plan);
  REQUIRE(workspace.has_value());
  CHECK(workspace->counters_size == 65536);
  CHECK(workspace->partial_o_offset == 65536);
  CHECK(workspace->size == 65536 + 24 * 5 * 2 * 2 * 128 * (32 + 4) * 4);
  example.plan.batch = 1000;
  CHECK(decode_workspace(example.plan)->counters_size == 1000 * 24 * 2 * 4);
  example.plan.num_ctas_kv = 1;
  CHECK(decode_workspace(example.plan)->size == 0);
}

TEST_CASE("an MLA kernel has two halves of 256 columns, and four counters for each") {
  Example example;
  example.record.traits.scheduler = TileScheduler::kPersistent;
  example.record.traits.reuse_smem_k_for_v = true;
  example.record.traits.tile_q = 64;
  example.record.traits.head_dim_qk = 576;
  example.record.traits.head_dim_vo = 512;
  example.plan.batch = 3000;
  example.plan.grid = {2, 66, 1};
  const auto workspace = decode_workspace(example.plan);
  REQUIRE(workspace.has_value());
  CHECK(workspace->counters_size == 3000 * 2 * 2 * 4 * 4);
  CHECK(workspace->size == workspace->partial_o_offset + 2 * 66 * 2 * 2 * 128 * (128 + 4) * 4);
}

TEST_CASE("sizes beyond 63 bits are refused instead of wrapping") {
  Example example;
  example.plan.num_ctas_q = 0x7fffffff;
  example.plan.num_ctas_kv = 0x7fffffff;
  example.plan.grid = {1, 65535, 65535};
  const auto workspace = decode_workspace(example.plan);
  REQUIRE_FALSE(workspace.has_value());
  CHECK(workspace.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(workspace.error().message(), Catch::Matchers::Contains("too large"));
}
