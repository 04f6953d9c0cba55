#pragma once

#include "base/result.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "model/launch_plan.h"
#include "selector/kernel_table.h"
#include "selector/occupancy.h"
#include "selector/rules.h"

namespace cubist::selector {

struct SelectOptions {
  /// Only what the packs' own rules choose: refuse where the published runtime refuses.
  bool strict = false;
  RuleOptions rules;
  OccupancyQuery occupancy;
};

/// Chooses kernels for one attention call. Pure: no I/O, no CUDA, no global state; any number of
/// threads. Allocates nothing when it succeeds.
///
/// Packs are tried in the manifest's order, those with kernels for the device alone. In each the
/// rules of its revision choose; unless `options.strict`, where they find nothing although some
/// kernel serves, the best serving one is taken and its plan marked with the reason.
///
/// problem  lengths in tokens, strides in elements; -1 in a derived field means: work it out
/// device   sm, num_sms and the shared-memory limit; max_active_clusters where known
/// returns  plans, best first, never empty. A plan with min_active_clusters above 0 may be launched
///          only if that many clusters fit at once; when no occupancy answer is at hand the next
///          plans say what to take instead
/// errors   kInvalidArgument, kUnsupported: a field that is out of range or contradicts another;
///          kUnsupported: no kernel serves (or, strict, the rules find none): the message says what
///          was asked for
Result<Selection> select(const KernelTable& table, const AttentionProblem& problem,
                         const DeviceProfile& device, const SelectOptions& options = {});

/// The same into a selection the caller keeps, which saves clearing and moving one. After a failure
/// `out` holds no plans.
Status select_into(const KernelTable& table, const AttentionProblem& problem,
                   const DeviceProfile& device, const SelectOptions& options, Selection& out);

/// Why a pack's own rules refused; the pieces of `select` that explain needs too.
struct PackAnswer {
  RuleRefusal refusal = RuleRefusal::kNone;
  KernelTraits wanted;      ///< what they looked up last, for the message
  std::int64_t grid_x = 0;  ///< kGridLimits: the CTAs in X of a launch that has the fewest
};

/// The plans of one pack for a request that passed the pack's entry checks, into `selection`;
/// num_plans 0: refused.
void answer_from_pack(const PackTable& pack, const Request& request, const DeviceProfile& device,
                      const SelectOptions& options, RuleTrace* trace, Selection& selection,
                      PackAnswer& answer);

/// Whether the pack's rules are meant for the device and it has kernels for it.
bool pack_fits_device(const PackTable& pack, std::uint32_t sm);

/// What the release's entry points refuse before they look for a kernel.
Status check_entry(HeuristicRevision revision, const Request& request);

/// "no kernel in the pack for qkv_layout paged, mask causal, ..."
Error refusal_error(const PackTable& pack, const Request& request, const PackAnswer& answer,
                    bool strict);

std::string_view to_string(RuleRefusal refusal);

/// The traits that a look-up compares, on one line: "dtype_q bf16, ..., tile_q 16, ...".
std::string describe_wanted(const KernelTraits& wanted);

}  // namespace cubist::selector
