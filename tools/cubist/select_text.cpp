#include "select_text.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "codec/plan_json.h"

namespace cubist::tools {
namespace {

template <class... Args>
void line(fmt::format_string<Args...> text, Args&&... args) {
  std::puts(fmt::format(text, std::forward<Args>(args)...).c_str());
}

void print_steps(const std::vector<selector::ExplainStep>& steps) {
  for (const selector::ExplainStep& step : steps) {
    if (step.topic == "pass") {
      line("  {}", step.text);
    } else {
      line("    {:<12} {}", step.topic, step.text);
    }
  }
}

void print_nearest(const std::vector<selector::NearKernel>& nearest) {
  if (nearest.empty()) return;
  line("  nearest kernels, and what would have to change:");
  for (const selector::NearKernel& near : nearest) {
    line("    {}", near.record->name);
    for (const selector::Difference& d : near.differences) {
      line("      {}: needed {}, the kernel has {}{}", d.field, d.needed, d.found,
           d.advice.empty() ? "" : "; change to: " + d.advice);
    }
  }
}

std::string triple(const std::array<std::uint32_t, 3>& v) {
  return fmt::format("{} x {} x {}", v[0], v[1], v[2]);
}

std::string split_text(const LaunchPlan& plan) {
  const KernelTraits& traits = plan.record->traits;
  if (plan.family == KernelFamily::kCubistDecode &&
      traits.scheduler == TileScheduler::kPersistent) {
    return fmt::format(
        "{} CTA(s) over query tokens; {} groups of CTAs share all sequences' KV ({})",
        plan.num_ctas_q, plan.num_ctas_kv, to_string(traits.multi_ctas_kv_mode));
  }
  return fmt::format("{} CTA(s) over query tokens, {} over KV ({})", plan.num_ctas_q,
                     plan.num_ctas_kv, to_string(traits.multi_ctas_kv_mode));
}

/// Of all packs, the nearest first; at most `count`.
std::vector<const selector::NearKernel*> nearest_of(const selector::Explanation& explanation,
                                                    std::size_t count) {
  std::vector<const selector::NearKernel*> nearest;
  for (const selector::PackExplanation& pack : explanation.packs) {
    for (const selector::NearKernel& near : pack.nearest) nearest.push_back(&near);
  }
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const auto* a, const auto* b) { return a->distance < b->distance; });
  nearest.resize(std::min(nearest.size(), count));
  return nearest;
}

}  // namespace

Error with_nearest(const Error& refusal, const selector::Explanation& explanation) {
  constexpr std::size_t kShown = 3;
  const auto nearest = nearest_of(explanation, kShown);
  if (refusal.code() != StatusCode::kUnsupported || nearest.empty()) return refusal;
  const std::size_t end = std::min(refusal.message().find('\n'), refusal.message().size());
  std::string text = refusal.message().substr(0, end);
  for (const selector::NearKernel* near : nearest) {
    text += fmt::format("\n  nearest: {}", near->record->name);
    if (near->differences.empty()) text += "\n    serves it, though the rules do not ask for it";
    for (const selector::Difference& d : near->differences) {
      text += fmt::format("\n    {}: asked for {}, it has {}", d.field, d.needed, d.found);
    }
  }
  return Error(refusal.code(), text + refusal.message().substr(end));
}

void print_selection(const Selection& selection) {
  const LaunchPlan& plan = selection.best();
  const KernelTraits& traits = plan.record->traits;
  line("kernel    {}", plan.record->name);
  line("sha256    {}", plan.record->sha256.hex());
  line("rules     {}{}", to_string(plan.revision),
       plan.fallback == FallbackReason::kNone
           ? ""
           : fmt::format("; fallback ({}): the best kernel that serves", to_string(plan.fallback)));
  line("grid      {}   block {}   cluster {}", triple(plan.grid), plan.block[0], plan.cluster[0]);
  line("smem      {} bytes   pdl {}   cluster_sched_policy {}", plan.smem, plan.pdl,
       plan.cluster_sched_policy);
  line("tile      tile_q {}, tile_kv {}, step_q {}, step_kv {}; {} token(s) x {} head(s) per CTA",
       traits.tile_q, traits.tile_kv, traits.step_q, traits.step_kv, plan.num_tokens_per_cta_q,
       plan.num_heads_per_cta);
  line("split     {}", split_text(plan));
  if (plan.reduction.needed) {
    line("reduction grid {}   block {}", triple(plan.reduction.grid), plan.reduction.block);
  }
  if (plan.lse.needed) line("lse       grid {}   block {}", triple(plan.lse.grid), plan.lse.block);
  if (plan.min_active_clusters > 0) {
    line("needs     {} clusters of {} at once on the device", plan.min_active_clusters,
         plan.cluster[0]);
  }
  for (std::uint32_t i = 1; i < selection.num_plans; ++i) {
    line("else      {}", selection.plans[i].record->name);
  }
}

void print_explanation(const selector::Explanation& explanation) {
  line("problem");
  print_steps(explanation.request);
  for (const selector::PackExplanation& pack : explanation.packs) {
    line("pack {} ({})", pack.pack, to_string(pack.revision));
    print_steps(pack.steps);
    print_nearest(pack.nearest);
  }
  if (explanation.runner_up) {
    line("runner-up {} (modelled time {:.0f}; chosen {:.0f})", explanation.runner_up->record->name,
         static_cast<double>(explanation.runner_up->time),
         static_cast<double>(explanation.chosen_time));
  }
  for (const selector::BarredNote& note : explanation.barred) {
    line("barred    {}: {}", note.record->name, note.reason);
  }
}

}  // namespace cubist::tools
