#include <numeric>

#include "kernels.h"
#include "selector/cost_model.h"
#include "selector/geometry.h"
#include "selector/occupancy.h"
#include "selector/reduction.h"
#include "support/catch.h"

namespace cubist {
namespace {

using namespace selector;

Request decode_request() {
  AttentionProblem p;
  p.num_q_heads = 96;
  p.batch = 2;
  p.max_q_len = 4;
  p.max_kv_len = 32768;
  Request request;
  REQUIRE(prepare_request(p, test::b200(), request).has_value());
  return request;
}

KernelTraits tile(int tile_q) {
  KernelTraits traits;
  traits.kernel_type = KernelType::kKeepsMmaAbGeneration;
  traits.head_dim_qk = traits.head_dim_vo = traits.head_dim_per_cta_v = 128;
  traits.tile_q = traits.step_q = static_cast<std::uint16_t>(tile_q);
  traits.tile_kv = 128;
  traits.step_kv = 256;
  traits.groups_heads_q = traits.groups_tokens_heads_q = true;
  return traits;
}

}  // namespace

TEST_CASE("the GPC model gives the answers that recordings of eight GPCs give") {
  const std::vector<std::array<std::int32_t, 3>> recorded = {
      {148, 2, 74}, {148, 3, 48}, {148, 4, 34}, {148, 5, 26}, {148, 6, 24}, {148, 8, 16},
      {148, 9, 16}, {148, 12, 8}, {152, 2, 76}, {152, 4, 36}, {160, 5, 32}, {160, 10, 16},
      {132, 2, 66}, {132, 8, 16}, {132, 16, 8}, {142, 4, 32}, {142, 14, 8}, {64, 3, 16},
      {64, 6, 8},   {64, 8, 8},   {16, 2, 8},   {148, 7, 16}, {148, 16, 8}, {152, 9, 16}};
  for (const auto& [sms, size, answer] : recorded) {
    INFO(sms << " SMs, clusters of " << size);
    CHECK(clusters_from_gpcs(modelled_gpcs(sms))[static_cast<std::size_t>(size)] == answer);
  }
  for (int sms = 1; sms < 400; ++sms) {
    const auto gpcs = modelled_gpcs(sms);
    REQUIRE(std::accumulate(gpcs.begin(), gpcs.end(), 0) == sms);
  }
}

TEST_CASE("an occupancy answer comes from the problem, else the profile, else the query") {
  Request request = decode_request();
  DeviceProfile device = test::b200();
  LaunchPlan plan;
  plan.cluster = {4, 1, 1};
  int calls = 0;
  const OccupancyQuery query{[](void* count, const LaunchPlan& asked) {
                               ++*static_cast<int*>(count);
                               return static_cast<std::int32_t>(asked.cluster[0]) * 10;
                             },
                             &calls};
  CHECK(active_clusters(request, device, OccupancyQuery{}, plan) == -1);
  CHECK(active_clusters(request, device, query, plan) == 40);
  CHECK(calls == 1);
  device.max_active_clusters[4] = 30;
  CHECK(active_clusters(request, device, query, plan) == 30);
  request.max_active_clusters = 0;
  CHECK(active_clusters(request, device, query, plan) == 0);
  CHECK(calls == 1);
}

TEST_CASE("tokens and heads of a CTA, clamped to one token where the head group is larger") {
  Request request = decode_request();  // 12 heads per KV head
  CHECK(tokens_per_cta(request, tile(64)) == 5);
  CHECK(heads_per_cta(request, tile(64)) == 12);
  CHECK(tokens_per_cta(request, tile(8)) == 1);
  CHECK(heads_per_cta(request, tile(8)) == 8);
  KernelTraits ungrouped = tile(64);
  ungrouped.groups_tokens_heads_q = false;
  CHECK(tokens_per_cta(request, ungrouped) == 1);
}

TEST_CASE("the grid, its split and the cluster of a decode kernel") {
  const Request request = decode_request();
  KernelTraits traits = tile(16);
  traits.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory;
  CtaGrid grid;
  REQUIRE(base_grid(request, traits, false, grid) == GeometryFault::kNone);
  CHECK(grid.num_ctas_q == 4);
  CHECK(grid.total() == 4 * 8 * 2);
  const std::int32_t split = split_count(request, traits, grid);
  CHECK(split == 2);  // 148 / 64
  apply_split(traits, split, grid);
  CHECK(grid.x == 8);
  CHECK(grid.cluster_x == 2);
  CHECK(grid.total() == 128);
}

TEST_CASE("a window bounds the keys a split is made over") {
  Request request = decode_request();
  KernelTraits traits = tile(16);
  request.window = 1024;
  CHECK(visible_kv_len(request, traits) == 32768);  // this kernel knows no window
  traits.mask_type = MaskType::kSlidingOrChunked;
  CHECK(visible_kv_len(request, traits) == 1024 + 255);
  request.window = kUnlimited;
  request.chunk = 512;
  CHECK(visible_kv_len(request, traits) == 512);
}

TEST_CASE("the modelled time follows the published tables") {
  CtaGrid grid;
  grid.x = 9;
  grid.y = 8;
  grid.z = 2;
  grid.num_ctas_kv = 9;
  // 144 CTAs, one wave; 32,768 keys in steps of 256 over 9 CTAs: 15 steps
  CHECK(modelled_time(32768, 148, 64, 256, grid) == 1.68F * 3840.0F + 1.2F * 128.0F * 9.0F);
  grid.z = 4;
  CHECK(wave_count(grid, 148) == 2);
  CHECK(tile_cost(8).per_key == 1.0F);
  CHECK(tile_cost(128).per_key == 2.2F);
}

TEST_CASE("the reduction and the log-sum-exp launch") {
  AttentionProblem p;
  p.num_q_heads = 64;
  p.num_kv_heads = 1;
  p.head_dim_qk = 576;
  p.head_dim_vo = 512;
  p.batch = 4;
  p.max_q_len = 4;
  p.sum_seq_q = 12;
  DeviceProfile device = test::b200();
  device.num_sms = 142;
  Request request;
  REQUIRE(prepare_request(p, device, request).has_value());
  KernelTraits traits = tile(64);
  traits.head_dim_qk = 576;
  traits.head_dim_vo = traits.head_dim_per_cta_v = 512;
  traits.dtype_q = traits.dtype_o = Dtype::kBf16;
  CtaGrid grid;
  grid.num_ctas_q = 4;
  ReductionPlan reduction;
  REQUIRE(reduction_supports(traits));
  plan_reduction(request, traits, grid, reduction);
  CHECK(reduction.grid == std::array<std::uint32_t, 3>{32, 1, 4});
  CHECK(reduction.ctas_per_tile == 8);
  LsePlan lse;
  plan_lse(request, lse);
  CHECK(lse.block == 1024);  // 768 values
  CHECK(lse.grid[0] == 1);
  traits.dtype_o = Dtype::kE2m1;
  CHECK_FALSE(reduction_supports(traits));
}

}  // namespace cubist
