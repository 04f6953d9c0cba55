#include <cmath>
#include <cstring>

#include "launcher/trtllm_gen/params.h"
#include "launcher/trtllm_gen/prepare.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using namespace cubist::trtllm_gen;

struct Call {
  AttentionProblem problem;
  KernelRecord record;
  LaunchPlan plan;
  Addresses addresses;

  Call() {
    problem.num_q_heads = 64;
    problem.num_kv_heads = 8;
    problem.batch = 4;
    record.traits.tile_q = record.traits.step_q = 8;
    record.traits.tile_kv = 128;
    record.traits.kernel_type = KernelType::kSwapsMmaAbGeneration;
    record.traits.groups_heads_q = true;
    plan.record = &record;
  }

  Status fill(Params1280& params) const {
    return fill_params(prepare_problem(problem), plan, 148, addresses, params);
  }
};

}  // namespace

TEST_CASE("log2(e) is applied to a host scale once, and never to a device scale") {
  Call call;
  Params1280 params;
  call.problem.bmm1_scale = {.value = 0.125, .on_device = false};
  REQUIRE(call.fill(params));
  CHECK(params.scale_softmax_log2 == Approx(0.125 * 1.4426950408889634));
  CHECK(params.ptr_scale_softmax_log2 == 0);

  call.problem.bmm1_scale.on_device = true;
  call.addresses.bmm1_scale = 0xabc0;
  REQUIRE(call.fill(params));
  CHECK(params.ptr_scale_softmax_log2 == 0xabc0);
}

TEST_CASE("the multiply-and-shift divisor divides like the processor") {
  Call call;
  for (const std::int32_t heads_per_kv : {1, 2, 3, 5, 7, 8, 12, 16, 18, 20, 64, 127, 128, 255}) {
    call.problem.num_q_heads = heads_per_kv * call.problem.num_kv_heads;
    Params1280 params;
    REQUIRE(call.fill(params));
    const FastDivisor d = params.num_heads_q_per_kv_divisor;
    CHECK(d.divisor == heads_per_kv);
    if (heads_per_kv == 1) continue;  // the kernels treat a divisor of one apart
    for (std::uint32_t n = 0; n < 5000; ++n) {
      const std::uint64_t high = (std::uint64_t{n} * d.multiplier) >> 32;
      REQUIRE((high >> d.shift) == n / static_cast<std::uint32_t>(heads_per_kv));
    }
  }
}

TEST_CASE("what does not fit 32 bits is refused by name") {
  Call call;
  Params1280 params;
  call.problem.batch = 1 << 20;
  call.problem.max_q_len = 1 << 12;
  const Status filled = call.fill(params);
  REQUIRE_FALSE(filled);
  CHECK(filled.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(filled.error().message(), Catch::Contains("sum_seq_q"));

  Call pages;
  pages.problem.num_pages = std::int64_t{1} << 31;
  CHECK_THAT(pages.fill(params).error().message(), Catch::Contains("num_pages"));

  Call odd;
  odd.problem.page_size = 48;
  CHECK_THAT(odd.fill(params).error().message(), Catch::Contains("page_size 48"));
}

TEST_CASE("the window counts the query's own token, and no window is the largest int") {
  Call call;
  Params1280 params;
  REQUIRE(call.fill(params));
  CHECK(params.attention_window_size == 0x7fffffff);
  call.problem.window_left = 127;
  REQUIRE(call.fill(params));
  CHECK(params.attention_window_size == 128);
}
