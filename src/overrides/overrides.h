#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "overrides/rule_file.h"
#include "selector/explain.h"
#include "selector/kernel_table.h"
#include "selector/select.h"

namespace cubist::overrides {

/// A user's rules, bound to the packs they are for.
///
/// Precedence, strongest first: barred hashes; `forbid` of every rule that applies; `force` of the
/// first rule in the file that applies and forces anything. What is left is selected from as if the
/// pack held nothing else: the published rules choose if what they ask for is left, else the best
/// kernel that serves is taken and its plan says so. A forced kernel that does not serve a problem
/// is never launched: selection fails and names the rule.
///
/// Any number of threads may use one object. It keeps a table for each combination of rules that
/// has applied, about 4 MB each for the largest packs.
class Overrides {
 public:
  /// packs   must outlive the object, as must their records
  /// barred  kernels barred already (revocations)
  /// errors  kInvalidArgument: a hash, filter or condition that no kernel of the packs answers to,
  /// by
  ///         file, rule and field
  static Result<Overrides> bind(RuleFile file, std::span<const selector::PackView> packs,
                                std::span<const selector::BarredKernel> barred = {});

  /// The table to select from for this problem.
  /// errors  kUnsupported: the rules that apply leave no kernel at all
  Result<const selector::KernelTable*> table_for(const AttentionProblem& problem,
                                                 const DeviceProfile& device) const;

  /// `selector::select` from that table; a failure names the rules that applied.
  Result<Selection> select(const AttentionProblem& problem, const DeviceProfile& device,
                           const selector::SelectOptions& options = {}) const;

  /// `selector::explain` from that table, with a step "override" for each rule that applied and for
  /// each force that came too late; a refusal names the rules that applied.
  Result<selector::Explanation> explain(const AttentionProblem& problem,
                                        const DeviceProfile& device,
                                        const selector::SelectOptions& options = {}) const;

  /// One sentence for each rule that applies: "rule 'x' forces tile_q 64 (reason)".
  std::vector<std::string> describe(const AttentionProblem& problem,
                                    const DeviceProfile& device) const;

  /// Where some rule begins or ceases to apply along a field of numbers: the last value before.
  std::vector<std::int32_t> ends_in(std::string_view field) const;

  const RuleFile& file() const { return state_->file; }

 private:
  using RuleNumbers = std::vector<std::size_t>;
  struct State {
    RuleFile file;
    std::vector<selector::PackView> packs;
    std::vector<selector::BarredKernel> barred;
    std::mutex mutex;
    std::map<RuleNumbers, std::unique_ptr<const selector::KernelTable>> tables;
  };

  explicit Overrides(std::unique_ptr<State> state) : state_(std::move(state)) {}
  RuleNumbers applying(const AttentionProblem& problem, const DeviceProfile& device) const;
  Result<std::unique_ptr<const selector::KernelTable>> build_table(const RuleNumbers& rules) const;
  std::string names_of(const RuleNumbers& rules) const;
  /// Which rules applied, for an error; empty: none.
  std::string context_of(const AttentionProblem& problem, const DeviceProfile& device) const;

  std::unique_ptr<State> state_;
};

}  // namespace cubist::overrides
