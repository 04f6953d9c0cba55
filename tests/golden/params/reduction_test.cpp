// Our reduction and LSE kernels behind the main kernels that the published runtime launched.

#include "launcher/trtllm_gen/reduction.h"
#include "launcher/trtllm_gen/lse.h"
#include "launcher/trtllm_gen/prepare.h"
#include "recording.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using cubist::test::RecordedLaunch;
using trtllm_gen::Addresses;

constexpr std::uint64_t kWorkspace = std::uint64_t{6} << 44;

Addresses made_up_addresses() {
  Addresses a;
  a.o = 0x1000;
  a.workspace = kWorkspace;
  a.seq_lens_kv = a.cum_seq_lens_q = a.sinks = a.topk_lens = a.bmm1_scale = a.lse = 0x2000;
  return a;
}

/// Eight bytes of the recorded parameter block, at a published offset.
std::uint64_t recorded_pointer(const RecordedLaunch& launch, std::size_t offset) {
  const std::string digits = launch.params_hex.substr(2 * (offset - launch.params_offset), 16);
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) {
    value = value << 8 | std::stoull(digits.substr(2 * i, 2), nullptr, 16);
  }
  return value;
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

struct Offsets {
  std::size_t partial_o;
  std::size_t partial_stats;
  std::size_t softmax_stats;
};

std::string reduction_difference(const RecordedLaunch& launch, const Offsets& at) {
  const auto params =
      trtllm_gen::fill_reduction_params(trtllm_gen::prepare_problem(launch.problem),
                                        launch.with_record(), launch.num_sms, made_up_addresses());
  if (!params) return params.error().message();
  if (address_of(params->partial_o) != recorded_pointer(launch, at.partial_o)) return "partial O";
  if (address_of(params->partial_stats) != recorded_pointer(launch, at.partial_stats)) {
    return "partial statistics";
  }
  if (address_of(params->softmax_stats) != recorded_pointer(launch, at.softmax_stats)) {
    return "softmax statistics";
  }
  return "";
}

std::string lse_difference(const RecordedLaunch& launch, const Offsets& at) {
  const auto params =
      trtllm_gen::fill_lse_params(trtllm_gen::prepare_problem(launch.problem), launch.with_record(),
                                  launch.num_sms, made_up_addresses());
  if (!params) return params.error().message();
  return address_of(params->softmax_stats) == recorded_pointer(launch, at.softmax_stats)
             ? ""
             : "softmax statistics";
}

struct Counts {
  int reductions = 0;
  int lses = 0;
};

Counts compare_all(const char* file, HeuristicRevision revision, const Offsets& at) {
  Counts counts;
  for (const RecordedLaunch& launch : cubist::test::read_recorded_launches(
           std::string(CUBIST_SOURCE_DIR "/tests/golden/select/") + file, revision)) {
    INFO(launch.id);
    if (launch.plan.reduction.needed) {
      ++counts.reductions;
      CHECK(reduction_difference(launch, at) == "");
    }
    if (launch.plan.lse.needed) {
      ++counts.lses;
      CHECK(lse_difference(launch, at) == "");
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("reduction and LSE read what main kernels of 0.6.13 were told to write") {
  const Counts counts = compare_all("selection-0.6.13.jsonl.gz",
                                    HeuristicRevision::kTrtllmGenFmha_0_6_13, {1008, 1016, 1096});
  CHECK(counts.reductions == 66);
  CHECK(counts.lses > 0);
  WARN(counts.reductions << " reductions and " << counts.lses << " LSE launches compared");
}

TEST_CASE("reduction and LSE read what main kernels of 0.6.8 were told to write") {
  const Counts counts = compare_all("selection-0.6.8.jsonl.gz",
                                    HeuristicRevision::kTrtllmGenFmha_0_6_8, {880, 888, 968});
  CHECK(counts.reductions > 0);
  CHECK(counts.lses > 0);
  WARN(counts.reductions << " reductions and " << counts.lses << " LSE launches compared");
}
