// Five scales by host numbers, by device pointers made with the host's arithmetic, and by the fuse
// kernel: the same bits of output, of static and persistent kernels, PDL on and off.

#include <array>
#include <bit>

#include "launcher/scales.h"
#include "launcher_rig.h"

namespace cubist {
namespace {

/// A quantised KV cache, so that all five scales may be given.
AttentionProblem e4m3_problem(bool pdl) {
  AttentionProblem problem;
  problem.dtype_k = problem.dtype_v = Dtype::kE4m3;
  problem.head_dim_qk = 128;
  problem.num_q_heads = 32;
  problem.batch = 3;
  problem.max_q_len = 2;
  problem.max_kv_len = 3000;
  problem.page_size = 32;
  problem.enable_pdl = pdl;
  return problem;
}

/// bf16 KV and many rows: a persistent kernel.
AttentionProblem persistent_problem(bool pdl) {
  AttentionProblem problem = e4m3_problem(pdl);
  problem.dtype_k = problem.dtype_v = Dtype::kBf16;
  problem.num_q_heads = 64;
  problem.batch = 8;
  problem.max_q_len = 8;
  return problem;
}

launcher::HostScales all_scales(bool quantised) {
  launcher::HostScales scales;
  scales.q_scale = 0.731F;
  scales.k_scale = quantised ? 1.37F : 1.0F;
  scales.v_scale = quantised ? 0.219F : 1.0F;
  scales.sm_scale = 0.0917F;
  scales.o_scale = 1.83F;
  return scales;
}

/// The three ways for one problem; returns the kernel's scheduler.
TileScheduler check_ways(const AttentionProblem& problem) {
  Rig rig(problem);
  Call call(*rig.session, *rig.selected);
  const bool quantised = problem.dtype_k == Dtype::kE4m3;
  const launcher::HostScales host = all_scales(quantised);
  call.args.scales = host;
  const launcher::FusedScales fused =
      launcher::fuse_scales(host.q_scale, host.k_scale, host.sm_scale, host.v_scale, host.o_scale);
  call.set_scales({fused.bmm1, fused.bmm2});
  REQUIRE(rig.selected->launch(call.args, nullptr));
  const auto by_host = call.output();
  call.check(by_host);

  launcher::CallArgs by_pointer = call.args;
  by_pointer.scales = {};
  by_pointer.bmm1_scale_log2 =
      rig.session->upload(std::vector<float>{fused.bmm1_log2, fused.bmm2}).value();
  by_pointer.bmm2_scale = by_pointer.bmm1_scale_log2 + sizeof(float);
  call.poison();
  REQUIRE(rig.selected->launch(by_pointer, nullptr));
  CHECK(call.output() == by_host);

  const std::uint64_t scalars =
      rig.session
          ->upload(std::vector<float>{host.q_scale, host.k_scale, host.v_scale, host.sm_scale,
                                      host.o_scale, -1.0F, -1.0F})
          .value();
  const auto scalar = [&](std::uint64_t index) { return scalars + index * sizeof(float); };
  const launcher::DeviceScales on_device = {scalar(0), quantised ? scalar(1) : 0,
                                            quantised ? scalar(2) : 0, scalar(3), scalar(4)};
  REQUIRE(rig.runtime->fuse_scales(problem, on_device, {}, scalar(5), scalar(6), nullptr));
  launcher::CallArgs by_kernel = by_pointer;
  by_kernel.bmm1_scale_log2 = scalar(5);
  by_kernel.bmm2_scale = scalar(6);
  call.poison();
  REQUIRE(rig.selected->launch(by_kernel, nullptr));  // waits for the fuse kernel, PDL or not
  CHECK(call.output() == by_host);
  const auto made = rig.session->download<float>(scalar(5), 2).value();
  CHECK(std::bit_cast<std::uint32_t>(made[0]) == std::bit_cast<std::uint32_t>(fused.bmm1_log2));
  CHECK(std::bit_cast<std::uint32_t>(made[1]) == std::bit_cast<std::uint32_t>(fused.bmm2));

  // Without sm_scale, by host and by kernel.
  launcher::CallArgs by_default = call.args;
  by_default.scales.sm_scale = 0.0F;
  call.poison();
  REQUIRE(rig.selected->launch(by_default, nullptr));
  const auto defaulted = call.output();
  launcher::DeviceScales without_sm = on_device;
  without_sm.sm_scale = 0;
  REQUIRE(rig.runtime->fuse_scales(problem, without_sm, {}, scalar(5), scalar(6), nullptr));
  call.poison();
  REQUIRE(rig.selected->launch(by_kernel, nullptr));
  CHECK(call.output() == defaulted);
  CHECK(defaulted != by_host);
  return rig.selected->selection().best().record->traits.scheduler;
}

TEST_CASE("host scales, device pointers and the fuse kernel give the same bits") {
  for (const bool pdl : {true, false}) {
    check_ways(e4m3_problem(pdl));
    CHECK(check_ways(persistent_problem(pdl)) == TileScheduler::kPersistent);
  }
}

TEST_CASE(
    "k_scale and v_scale of a cache that is not quantised are refused by the fuse kernel too") {
  Rig rig;
  const std::uint64_t scalar = rig.session->upload(std::vector<float>{1.0F, 0.0F, 0.0F}).value();
  launcher::DeviceScales scales;
  scales.k_scale = scalar;
  const Status refused = rig.runtime->fuse_scales(rig.selected->problem(), scales, {}, scalar + 4,
                                                  scalar + 8, nullptr);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(refused.error().message(), Catch::Matchers::Contains("k_scale"));
}

}  // namespace
}  // namespace cubist
