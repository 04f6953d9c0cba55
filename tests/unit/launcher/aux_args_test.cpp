// Parameters of the reduction, the LSE and the fuse kernel: what is filled in and what is refused.

#include <cmath>
#include <functional>

#include "gpu/aux_case.h"
#include "launcher/aux_kernels.h"
#include "launcher/scales.h"
#include "launcher/trtllm_gen/lse.h"
#include "launcher/trtllm_gen/reduction.h"
#include "support/catch.h"

using namespace cubist;
using namespace cubist::test;
using Catch::Matchers::Contains;
using trtllm_gen::Addresses;

namespace {

ReduceCase sample() {
  ReduceCase made;
  made.dtype_q = Dtype::kE4m3;
  made.columns = 256;
  made.num_head_dim_ctas = 2;
  made.num_q_heads = 40;
  made.max_q_len = 2;
  made.q_lens = {2, 1};
  made.kv_lens = {300, 20};
  made.sinks = true;
  return made;
}

Addresses all_addresses() {
  Addresses a;
  a.o = 0x1000;
  a.workspace = 0x100000;
  a.seq_lens_kv = 0x2000;
  a.cum_seq_lens_q = 0x3000;
  a.sinks = 0x4000;
  a.topk_lens = 0x5000;
  a.bmm1_scale = 0x6000;
  a.lse = 0x7000;
  return a;
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// The error of a launch that was changed before it is filled in; "" where it is not refused.
std::string refusal(const ReduceCase& made,
                    const std::function<void(ReduceLaunch&, Addresses&)>& change,
                    StatusCode code = StatusCode::kInvalidArgument) {
  ReduceLaunch launch = launch_of(made);
  Addresses addresses = all_addresses();
  change(launch, addresses);
  const auto params =
      trtllm_gen::fill_reduction_params(launch.problem, launch.plan, launch.num_sms, addresses);
  if (params.has_value()) return "";
  CHECK(params.error().code() == code);
  return params.error().message();
}

}  // namespace

TEST_CASE("reduction parameters follow problem, plan and workspace") {
  const ReduceCase made = sample();
  const ReduceLaunch launch = launch_of(made);
  const auto params = trtllm_gen::fill_reduction_params(launch.problem, launch.plan, launch.num_sms,
                                                        all_addresses());
  REQUIRE(params.has_value());
  // Counters, then statistics of two sequences of up to 256 tokens and their guard.
  const std::uint64_t stats = 0x100000 + 8192 * 256 * 4;
  const std::uint64_t scratch = stats + 8ULL * 40 * 2 * 256 + (1 << 20);
  CHECK(address_of(params->softmax_stats) == stats);
  CHECK(address_of(params->partial_stats) == scratch);
  CHECK(address_of(params->partial_o) ==
        scratch + static_cast<std::uint64_t>(launch.num_sms) * 64 * 8);
  CHECK(address_of(params->o) == 0x1000);
  CHECK(address_of(params->sinks) == 0x4000);
  CHECK(address_of(params->cum_seq_lens_q) == 0x3000);
  CHECK(params->topk_lens == nullptr);
  CHECK(params->bmm1_scale_log2 == nullptr);
  CHECK(params->scale_softmax_log2 == launcher::scale_log2(static_cast<double>(made.scale)));
  CHECK(params->sum_scale == 448.0F);
  CHECK(params->head_dim_vo == 512);
  CHECK(params->head_dim_per_cta == 256);
  CHECK(params->num_head_dim_ctas == 2);
  CHECK(params->tile_q == 64);
  CHECK(params->num_heads_per_cta == 40);
  CHECK(params->num_ctas_q == 2);
  CHECK(params->num_ctas_kv == 4);
}

TEST_CASE("the device softmax scale is honoured, and lengths are passed where they are meant") {
  ReduceCase made = sample();
  made.scale_on_device = true;
  made.q_lens.clear();
  made.sinks = false;
  made.wants_lse = false;
  made.sparse_topk = 128;
  made.topk_lens = {1, 2, 3, 4};
  made.dtype_q = Dtype::kBf16;
  const ReduceLaunch launch = launch_of(made);
  const auto params = trtllm_gen::fill_reduction_params(launch.problem, launch.plan, launch.num_sms,
                                                        all_addresses());
  REQUIRE(params.has_value());
  CHECK(address_of(params->bmm1_scale_log2) == 0x6000);
  CHECK(params->sum_scale == 1.0F);
  CHECK(address_of(params->topk_lens) == 0x5000);
  CHECK(params->sparse_topk == 128);
  CHECK(params->cum_seq_lens_q == nullptr);
  CHECK(params->sinks == nullptr);
  CHECK(params->softmax_stats == nullptr);
}

TEST_CASE("a reduction no kernel serves is refused by name") {
  const auto traits = [](const std::function<void(KernelTraits&)>& change) {
    return [change](ReduceLaunch& launch, Addresses&) { change(launch.record->traits); };
  };
  const auto unsupported = [&](const std::function<void(KernelTraits&)>& change) {
    return refusal(sample(), traits(change), StatusCode::kUnsupported);
  };
  CHECK_THAT(unsupported([](KernelTraits& t) { t.tile_q = 32; }), Contains("tile_q 32"));
  CHECK_THAT(unsupported([](KernelTraits& t) { t.tile_kv = 64; }), Contains("tile_kv 64"));
  CHECK_THAT(
      unsupported([](KernelTraits& t) { t.kernel_type = KernelType::kSwapsMmaAbGeneration; }),
      Contains("swaps"));
  CHECK_THAT(unsupported([](KernelTraits& t) { t.head_dim_per_cta_v = 80; }),
             Contains("80 columns"));
  CHECK_THAT(unsupported([](KernelTraits& t) { t.dtype_o = Dtype::kE2m1; }), Contains("e2m1"));
  CHECK_THAT(unsupported([](KernelTraits& t) { t.dtype_q = Dtype::kFp16; }),
             Contains("to bf16 with a fp16 query"));
  CHECK_THAT(refusal(sample(), traits([](KernelTraits& t) {
                       t.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory;
                     })),
             Contains("gmem"));
}

TEST_CASE("a dynamic token-sparse reduction needs its lengths and one token a CTA") {
  ReduceCase made = sample();
  made.sparse_topk = 128;
  made.topk_lens = {1, 2, 3};
  CHECK_THAT(refusal(made, [](ReduceLaunch&, Addresses& a) { a.topk_lens = 0; }),
             Contains("topk_lens"));
  made.num_q_heads = 8;
  made.groups_tokens = true;
  CHECK_THAT(refusal(
                 made, [](ReduceLaunch&, Addresses&) {}, StatusCode::kUnsupported),
             Contains("8 tokens"));
}

TEST_CASE("a plan whose tiles do not make up O is refused") {
  const auto plan = [](const std::function<void(LaunchPlan&)>& change, StatusCode code) {
    return refusal(
        sample(), [&](ReduceLaunch& l, Addresses&) { change(l.plan); }, code);
  };
  CHECK_THAT(plan([](LaunchPlan& p) { p.num_heads_per_cta = 30; }, StatusCode::kUnsupported),
             Contains("40 query heads"));
  CHECK_THAT(plan([](LaunchPlan& p) { p.num_tokens_per_cta_q = 2; }, StatusCode::kUnsupported),
             Contains("tiles of 64 rows"));
  CHECK_THAT(
      plan([](LaunchPlan& p) { p.reduction.num_head_dim_ctas = 1; }, StatusCode::kUnsupported),
      Contains("head_dim_vo 512"));
  CHECK_THAT(plan([](LaunchPlan& p) { p.reduction.grid[0] = 7; }, StatusCode::kInvalidArgument),
             Contains("grid 7x2x2"));
  CHECK_THAT(plan([](LaunchPlan& p) { p.reduction.block = 256; }, StatusCode::kInvalidArgument),
             Contains("256 threads"));
  CHECK_THAT(plan([](LaunchPlan& p) { p.reduction.needed = false; }, StatusCode::kInvalidArgument),
             Contains("reduction grid"));
}

TEST_CASE("an address a reduction needs is refused where it is missing or misaligned") {
  const auto address = [](const std::function<void(Addresses&)>& change) {
    return refusal(sample(), [&](ReduceLaunch&, Addresses& a) { change(a); });
  };
  CHECK_THAT(address([](Addresses& a) { a.o = 0; }), Contains("o at 0x0"));
  CHECK_THAT(address([](Addresses& a) { a.o = 0x1008; }),
             Contains("o at 0x1008") && Contains("16"));
  CHECK_THAT(address([](Addresses& a) { a.workspace = 0x100004; }), Contains("workspace"));
  CHECK_THAT(address([](Addresses& a) { a.seq_lens_kv = 0; }), Contains("seq_lens_kv"));
  CHECK_THAT(address([](Addresses& a) { a.cum_seq_lens_q = 2; }), Contains("cum_seq_lens_q"));
  CHECK_THAT(address([](Addresses& a) { a.sinks = 0; }), Contains("sinks"));
  CHECK(address([](Addresses& a) { a.bmm1_scale = a.topk_lens = 0; }) == "");
}

TEST_CASE("LSE parameters carry the strides, and a plan without LSE is refused") {
  ReduceLaunch launch = launch_of(sample());
  const auto fill = [&](const Addresses& a) {
    return trtllm_gen::fill_lse_params(launch.problem, launch.plan, launch.num_sms, a);
  };
  const auto params = fill(all_addresses());
  REQUIRE(params.has_value());
  CHECK(address_of(params->lse) == 0x7000);
  CHECK(params->stride_tokens == 43);
  CHECK(params->stride_heads == 1);
  CHECK(params->num_entries == 3 * 40);

  Addresses without = all_addresses();
  without.lse = 0;
  CHECK_THAT(fill(without).error().message(), Contains("lse at 0x0"));
  launch.problem.lse_stride_tokens = 0;
  CHECK_THAT(fill(all_addresses()).error().message(), Contains("strides 0 and 1"));
  launch.problem.lse_stride_tokens = 40;
  launch.plan.lse.grid[0] = 0;
  CHECK_THAT(fill(all_addresses()).error().message(), Contains("0 threads for 3 tokens"));
  launch.plan.lse.needed = false;
  CHECK_THAT(fill(all_addresses()).error().message(), Contains("select with lse"));
}

TEST_CASE("the fuse kernel takes each scale from the device or the host, never both") {
  AttentionProblem problem;
  problem.dtype_k = problem.dtype_v = Dtype::kE4m3;
  problem.head_dim_qk = 576;
  problem.head_dim_vo = 512;
  launcher::DeviceScales device;
  device.q_scale = 0x100;
  device.v_scale = 0x104;
  launcher::HostScales host;
  host.k_scale = 0.5F;
  const auto fill = [&] {
    return launcher::fill_fuse_scales_params(problem, device, host, 0x200, 0x204);
  };
  const auto params = fill();
  REQUIRE(params.has_value());
  CHECK(address_of(params->q) == 0x100);
  CHECK(params->k == nullptr);
  CHECK(params->k_value == 0.5F);
  CHECK(params->sm_value == static_cast<float>(1.0 / std::sqrt(192.0)));
  CHECK(address_of(params->bmm1_scale_log2) == 0x200);
  CHECK(address_of(params->bmm2_scale) == 0x204);

  host.q_scale = 2.0F;
  CHECK_THAT(fill().error().message(), Contains("both q_scale"));
  host.q_scale = 1.0F;
  device.v_scale = 0x102;
  CHECK_THAT(fill().error().message(), Contains("v_scale is 0x102"));
  device.v_scale = 0x104;
  problem.dtype_v = Dtype::kBf16;
  CHECK_THAT(fill().error().message(), Contains("v_scale is a device scalar") && Contains("bf16"));
  device.v_scale = 0;
  CHECK(fill().has_value());
  CHECK_THAT(launcher::fill_fuse_scales_params(problem, device, host, 0, 0x204).error().message(),
             Contains("bmm1_scale_log2"));
}

TEST_CASE("an aux kernel is found by its name and an arch that runs on the device") {
  using Kind = launcher::AuxKernel::Kind;
  KernelRecord record;
  record.traits.arch = {90, SmArch::Kind::kSpecific};
  record.name = launcher::reduction_kernel_name(Dtype::kE4m3, record.traits.arch);
  CHECK(record.name == "cubist_reduce_o_e4m3_sm90a");
  CHECK(launcher::is_aux_kernel(record, {Kind::kReduction, Dtype::kE4m3}, 90));
  CHECK_FALSE(launcher::is_aux_kernel(record, {Kind::kReduction, Dtype::kBf16}, 90));
  CHECK_FALSE(launcher::is_aux_kernel(record, {Kind::kReduction, Dtype::kE4m3}, 100));
  record.traits.arch = {100, SmArch::Kind::kFamily};
  record.name = launcher::lse_kernel_name(record.traits.arch);
  CHECK(record.name == "cubist_lse_sm100f");
  CHECK(launcher::is_aux_kernel(record, {Kind::kLse, Dtype::kBf16}, 103));
  record.name = launcher::fuse_scales_kernel_name(record.traits.arch);
  CHECK(record.name == "cubist_fuse_scales_sm100f");
  CHECK(launcher::is_aux_kernel(record, {Kind::kFuseScales, Dtype::kBf16}, 100));
}
