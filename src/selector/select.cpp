#include "selector/select.h"

#include <optional>

#include "selector/explain.h"
#include "selector/fallback.h"
#include "selector/plan.h"
#include "selector/request.h"
#include "selector/rules_cubist_decode.h"
#include "selector/serves.h"

namespace cubist::selector {
namespace {

/// What deciding about clusters needs, handed through the fall-back's filter.
struct ClusterKnowledge {
  const PackTable& pack;
  const Request& request;
  const DeviceProfile& device;
  const OccupancyQuery& query;

  /// -1 unknown, 0 too few fit, 1 enough fit (or the plan has no precondition).
  int verdict(const LaunchPlan& plan) const {
    if (plan.min_active_clusters == 0) return 1;
    const std::int32_t active = active_clusters(request, device, query, plan);
    if (active < 0) return -1;
    return active >= plan.min_active_clusters ? 1 : 0;
  }
};

bool accepts_clusters(const void* context, const KernelRecord& record, const CtaGrid& grid) {
  if (record.traits.multi_ctas_kv_mode != MultiCtasKvMode::kClusterSharedMemory) return true;
  const auto& known = *static_cast<const ClusterKnowledge*>(context);
  LaunchPlan plan;
  fill_plan(known.pack.pack(), known.request, record, grid, FallbackReason::kNone, plan);
  return known.verdict(plan) != 0;
}

RuleResult run_rules(const PackTable& pack, const Request& request, const RuleOptions& options,
                     RuleTrace* trace) {
  if (pack.pack().revision == HeuristicRevision::kTrtllmGenFmha_0_6_8) {
    return choose_0_6_8(pack, request, options, trace);
  }
  return choose_0_6_13(pack, request, options, trace);
}

/// A rule's choice counts only if it gives the right answer.
void check_choice(const PackTable& pack, const Request& request, RuleChoice& choice) {
  if (choice.refusal != RuleRefusal::kNone) return;
  const KernelTraits& traits = choice.record->traits;
  const HeuristicRevision revision = pack.pack().revision;
  if (serves_with_grid(request, traits, revision, choice.grid)) return;
  CtaGrid ignored;
  const bool groups =
      find_misfits(request, traits, revision, true, ignored).has(Misfit::kHeadGroups);
  choice.refusal = groups ? RuleRefusal::kSplitsHeadGroups : RuleRefusal::kNotServed;
  choice.wanted = traits;
}

FallbackReason reason_for(RuleRefusal refusal) {
  switch (refusal) {
    case RuleRefusal::kNone:
      return FallbackReason::kNone;
    case RuleRefusal::kNoKernel:
      return FallbackReason::kRuleFindsNoKernel;
    case RuleRefusal::kSplitsHeadGroups:
      return FallbackReason::kRuleSplitsHeadGroups;
    default:
      return FallbackReason::kRuleRefuses;
  }
}

void add_plan(const PackTable& pack, const Request& request, const KernelRecord& record,
              const CtaGrid& grid, FallbackReason reason, Selection& selection) {
  if (selection.num_plans == Selection::kMaxPlans) return;
  fill_plan(pack.pack(), request, record, grid, reason, selection.plans[selection.num_plans]);
  ++selection.num_plans;
}

/// Appends the ranked serving kernels behind what is there.
void add_fallback(const ClusterKnowledge& known, RuleRefusal refusal, Selection& selection) {
  const RankedKernels ranked =
      rank_serving_kernels(known.pack, known.request, accepts_clusters, &known);
  const std::uint32_t first = selection.num_plans;
  for (std::uint32_t i = 0; i < ranked.count; ++i) {
    const RankedKernel& kernel = ranked.kernels[i];
    if (first > 0 && kernel.record == selection.plans[0].record) continue;
    add_plan(known.pack, known.request, *kernel.record, kernel.grid, reason_for(refusal),
             selection);
    if (known.verdict(selection.plans[selection.num_plans - 1]) == 1) return;
  }
}

void answer_from_trtllm_gen(const PackTable& pack, const Request& request,
                            const DeviceProfile& device, const SelectOptions& options,
                            RuleTrace* trace, Selection& selection, PackAnswer& answer) {
  const ClusterKnowledge known{pack, request, device, options.occupancy};
  RuleResult rules = run_rules(pack, request, options.rules, trace);
  check_choice(pack, request, rules.choice);
  if (rules.has_sibling) check_choice(pack, request, rules.sibling);

  const RuleChoice* last = &rules.choice;
  if (rules.choice.refusal == RuleRefusal::kNone) {
    add_plan(pack, request, *rules.choice.record, rules.choice.grid, FallbackReason::kNone,
             selection);
    if (rules.has_sibling) {
      const int verdict = known.verdict(selection.plans[0]);
      if (verdict == 0) selection.num_plans = 0;
      last = &rules.sibling;
      if (rules.sibling.refusal == RuleRefusal::kNone) {
        add_plan(pack, request, *rules.sibling.record, rules.sibling.grid, FallbackReason::kNone,
                 selection);
      } else if (verdict == 1) {
        return;
      }
    }
  }
  if (last->refusal == RuleRefusal::kNone) return;
  answer.refusal = last->refusal;
  answer.wanted = last->wanted;
  if (!options.strict) add_fallback(known, last->refusal, selection);
}

/// Why no pack was asked at all.
Error no_pack_error(const KernelTable& table, std::uint32_t sm) {
  for (const PackTable& pack : table.packs()) {
    if (pack.pack().revision != HeuristicRevision::kNone || !pack.has_kernels_for(sm)) continue;
    return Error(
        StatusCode::kUnsupported,
        fmt::format("pack '{}' has kernels for sm {}, but its revision is none: no rules are "
                    "known that choose among them. They can be listed, fetched and "
                    "verified; to select, name a release whose rules are known, or import "
                    "this one with --revision",
                    pack.pack().name, sm));
  }
  return Error(StatusCode::kUnsupported,
               fmt::format("no pack of the manifest has kernels and rules for a device of compute "
                           "capability {}.{} (sm {}); {} pack(s) looked at: import or name a "
                           "manifest for this architecture",
                           sm / 10, sm % 10, sm, table.packs().size()));
}

}  // namespace

bool pack_fits_device(const PackTable& pack, std::uint32_t sm) {
  if (pack.pack().revision == HeuristicRevision::kNone) return false;
  // The trtllm-gen rules are written for 10.0 and 10.3 alone.
  if (pack.pack().family == KernelFamily::kTrtllmGenFmha && sm != 100 && sm != 103) return false;
  return pack.has_kernels_for(sm);
}

Status check_entry(HeuristicRevision revision, const Request& request) {
  if (request.batch_invariant && revision != HeuristicRevision::kCubistDecode_1) {
    return fail(StatusCode::kUnsupported,
                "batch_invariant is true; the rules of {} lay CTAs over a problem by its batch and "
                "the SMs there are, and a sequence's bits follow. Take kernels of the family "
                "cubist_decode, or batch_invariant false",
                to_string(revision));
  }
  switch (revision) {
    case HeuristicRevision::kTrtllmGenFmha_0_6_8:
      return check_entry_0_6_8(request);
    case HeuristicRevision::kTrtllmGenFmha_0_6_13:
      return check_entry_0_6_13(request);
    case HeuristicRevision::kCubistDecode_1:
      return check_entry_cubist_decode(request);
    case HeuristicRevision::kNone:
      break;
  }
  return fail(StatusCode::kInternal, "the pack names no heuristic revision");
}

void answer_from_pack(const PackTable& pack, const Request& request, const DeviceProfile& device,
                      const SelectOptions& options, RuleTrace* trace, Selection& selection,
                      PackAnswer& answer) {
  selection.num_plans = 0;
  answer.refusal = RuleRefusal::kNone;
  if (pack.pack().revision == HeuristicRevision::kCubistDecode_1) {
    answer_from_cubist_decode(pack, request, selection, answer);
  } else {
    answer_from_trtllm_gen(pack, request, device, options, trace, selection, answer);
  }
}

Status select_into(const KernelTable& table, const AttentionProblem& problem,
                   const DeviceProfile& device, const SelectOptions& options, Selection& out) {
  out.num_plans = 0;
  Request request;
  CUBIST_RETURN_IF_ERROR(prepare_request(problem, device, request));
  std::optional<Error> first_refusal;
  for (const PackTable& pack : table.packs()) {
    if (!pack_fits_device(pack, request.sm)) continue;
    if (Status entry = check_entry(pack.pack().revision, request); !entry) {
      if (!first_refusal) first_refusal = std::move(entry.error());
      continue;
    }
    PackAnswer answer;
    answer_from_pack(pack, request, device, options, nullptr, out, answer);
    if (out.num_plans > 0) return {};
    if (!first_refusal) first_refusal = refusal_error(pack, request, answer, options.strict);
  }
  if (!first_refusal) first_refusal = no_pack_error(table, request.sm);
  return tl::unexpected<Error>(with_barred(std::move(*first_refusal), table, request));
}

Result<Selection> select(const KernelTable& table, const AttentionProblem& problem,
                         const DeviceProfile& device, const SelectOptions& options) {
  Result<Selection> result{Selection{}};
  Status status = select_into(table, problem, device, options, *result);
  if (!status) result = forward_error(status);
  return result;
}

}  // namespace cubist::selector
