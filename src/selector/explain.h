#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "selector/fallback.h"
#include "selector/nearest.h"
#include "selector/select.h"

namespace cubist::selector {

/// One step of a decision: what it is about ("phase", "mask", "tile_q", ...) and a sentence.
struct ExplainStep {
  std::string topic;
  std::string text;
};

/// What one pack had to say to a problem.
struct PackExplanation {
  std::string_view pack;
  HeuristicRevision revision = HeuristicRevision::kNone;
  std::vector<ExplainStep> steps;  ///< in the order in which things were decided
  std::vector<PassNote> passes;    ///< the same as data: candidates with modelled cost, grids
  /// The fastest serving kernel of each tile_q by modelled time, largest tile first: what the
  /// choice was between, whether or not the rules asked the cost model.
  std::vector<RankedKernel> tiles;
  bool chose = false;               ///< the selection is this pack's
  std::vector<NearKernel> nearest;  ///< for a miss, at most five
};

/// A kernel that would have served but is barred.
struct BarredNote {
  const KernelRecord* record = nullptr;
  std::string reason;
};

/// A refusal, and the barred kernels that would have served: without them the reason it gives is
/// only half of it. Allocates freely.
Error with_barred(Error refusal, const KernelTable& table, const Request& request);

/// Why `select` answers as it does: the same code walked with notes taken.
struct Explanation {
  std::vector<ExplainStep> request;  ///< what the problem was understood to be
  std::vector<PackExplanation> packs;
  std::optional<Selection> selection;
  std::optional<Error> refusal;  ///< set when there is no selection
  std::optional<RankedKernel>
      runner_up;          ///< the best kernel beside the chosen one, by modelled time
  float chosen_time = 0;  ///< modelled, of the chosen kernel
  std::vector<BarredNote> barred;
};

/// Explains one selection. Allocates freely; otherwise as pure as `select`.
/// errors  what is wrong with the problem itself, as `select`; a problem that no kernel serves is
///         an explanation, not an error
Result<Explanation> explain(const KernelTable& table, const AttentionProblem& problem,
                            const DeviceProfile& device, const SelectOptions& options = {});

}  // namespace cubist::selector
