#include "launcher/trtllm_gen/workspace.h"

namespace cubist::trtllm_gen {
namespace {

// Fixed by the published runtime: 8,192 x 256 counters, and a guard behind the statistics.
constexpr std::uint64_t kCounterBytes = std::uint64_t{8192} * 256 * 4;
constexpr std::uint64_t kStatsGuardBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kStatsEntryBytes = 8;  // float2: maximum and sum
constexpr std::uint64_t kPartialElementBytes = 2;

std::uint64_t align16(std::uint64_t value) { return (value + 15) / 16 * 16; }

std::uint64_t stats_bytes(const AttentionProblem& problem, HeuristicRevision revision) {
  const auto heads = static_cast<std::uint64_t>(problem.num_q_heads);
  if (revision == HeuristicRevision::kTrtllmGenFmha_0_6_8) {
    return kStatsEntryBytes * heads * static_cast<std::uint64_t>(problem.sum_seq_q);
  }
  const auto rounded_q = (static_cast<std::uint64_t>(problem.max_q_len) + 255) / 256 * 256;
  return kStatsEntryBytes * heads * static_cast<std::uint64_t>(problem.batch) * rounded_q +
         kStatsGuardBytes;
}

bool wants_stats(const AttentionProblem& problem, HeuristicRevision revision) {
  // 0.6.8 carves them for ragged calls whether the LSE is wanted or not, and never for paged ones.
  if (revision == HeuristicRevision::kTrtllmGenFmha_0_6_8) return problem.phase == Phase::kRagged;
  return problem.lse;
}

bool leaves_partial_results(const KernelTraits& traits) {
  return traits.multi_ctas_kv_mode == MultiCtasKvMode::kGlobalMemory ||
         traits.multi_ctas_kv_mode == MultiCtasKvMode::kSeparateReduction;
}

Workspace carve(const AttentionProblem& problem, HeuristicRevision revision,
                const KernelTraits& traits, std::uint64_t ctas, std::int32_t num_sms) {
  Workspace workspace;
  std::uint64_t offset = 0;
  if (problem.phase != Phase::kContext) {
    workspace.counters = offset;
    workspace.counters_bytes = kCounterBytes;
    offset = align16(offset + kCounterBytes);
  }
  if (wants_stats(problem, revision)) {
    workspace.softmax_stats = offset;
    offset = align16(offset + stats_bytes(problem, revision));
  }
  workspace.partial_stats_bytes =
      static_cast<std::uint64_t>(num_sms) * traits.step_q * kStatsEntryBytes;
  if (problem.phase != Phase::kContext) {
    workspace.scratch = offset;
    if (leaves_partial_results(traits)) {
      const std::uint64_t columns =
          std::uint64_t{traits.head_dim_per_cta_v} * (traits.two_cta_mma ? 2 : 1);
      offset +=
          workspace.partial_stats_bytes + ctas * traits.step_q * columns * kPartialElementBytes;
    }
  }
  workspace.required_bytes = offset;
  return workspace;
}

}  // namespace

Workspace carve_workspace(const AttentionProblem& problem, const LaunchPlan& plan,
                          std::int32_t num_sms) {
  const std::uint64_t ctas = std::uint64_t{plan.grid[0]} * plan.grid[1] * plan.grid[2];
  return carve(problem, plan.revision, plan.record->traits, ctas, num_sms);
}

Workspace bound_workspace(const AttentionProblem& problem, HeuristicRevision revision,
                          const KernelTraits& traits, std::int32_t num_sms) {
  return carve(problem, revision, traits, static_cast<std::uint64_t>(num_sms), num_sms);
}

Status check_workspace(const Workspace& workspace, std::uint64_t given_bytes) {
  if (given_bytes >= workspace.required_bytes) return {};
  return fail(StatusCode::kInvalidArgument,
              "workspace_size {}: this launch needs {} bytes; ask the workspace size function",
              given_bytes, workspace.required_bytes);
}

}  // namespace cubist::trtllm_gen
