#include "overrides/overrides.h"

#include <algorithm>

#include "document/json_text.h"
#include "model/derived_problem.h"
#include "overrides/kernel_check.h"

namespace cubist::overrides {
namespace {

using selector::BarredKernel;
using selector::KernelTable;
using selector::PackView;

std::string with_reason(const std::string& text, const std::string& reason) {
  return reason.empty() ? text : text + " (" + reason + ")";
}

/// Why a kernel is not to be taken under these rules; empty if it may be.
std::string reason_against(const KernelRecord& record, const std::vector<const Rule*>& rules) {
  const Rule* forces = nullptr;
  for (const Rule* rule : rules) {
    if (!rule->forbid.empty() && rule->forbid.matches(record)) {
      return with_reason(fmt::format("override rule {} forbids it", in_quotes(rule->name)),
                         rule->reason);
    }
    if (forces == nullptr && !rule->force.empty()) forces = rule;
  }
  if (forces == nullptr || forces->force.matches(record)) return {};
  return with_reason(
      fmt::format("override rule {} forces {}", in_quotes(forces->name), forces->force.describe()),
      forces->reason);
}

}  // namespace

Result<Overrides> Overrides::bind(RuleFile file, std::span<const PackView> packs,
                                  std::span<const BarredKernel> barred) {
  CUBIST_RETURN_IF_ERROR(check_against_kernels(file, packs));
  auto state = std::make_unique<State>();
  state->packs.assign(packs.begin(), packs.end());
  state->barred.assign(barred.begin(), barred.end());
  for (const Bar& bar : file.bars) {
    state->barred.push_back({bar.sha256, with_reason("barred by " + file.file, bar.reason)});
  }
  state->file = std::move(file);
  for (PackView& pack : state->packs) {
    if (state->file.decode_model) pack.decode_model = &*state->file.decode_model;
  }
  return Overrides(std::move(state));
}

Overrides::RuleNumbers Overrides::applying(const AttentionProblem& problem,
                                           const DeviceProfile& device) const {
  const ProblemAndDevice value{with_derived_fields(problem), device};
  RuleNumbers found;
  for (std::size_t i = 0; i < state_->file.rules.size(); ++i) {
    if (state_->file.rules[i].applies(value)) found.push_back(i);
  }
  return found;
}

std::string Overrides::names_of(const RuleNumbers& rules) const {
  std::string names;
  for (const std::size_t rule : rules) {
    names += (names.empty() ? "" : ", ") + in_quotes(state_->file.rules[rule].name);
  }
  return names;
}

Result<std::unique_ptr<const KernelTable>> Overrides::build_table(const RuleNumbers& rules) const {
  std::vector<const Rule*> applied;
  for (const std::size_t rule : rules) applied.push_back(&state_->file.rules[rule]);
  std::vector<BarredKernel> barred = state_->barred;
  std::size_t left = 0;
  for (const PackView& pack : state_->packs) {
    for (const KernelRecord& record : pack.kernels) {
      std::string reason = reason_against(record, applied);
      if (reason.empty()) {
        ++left;
      } else {
        barred.push_back({record.sha256, std::move(reason)});
      }
    }
  }
  if (left == 0) {
    return fail(StatusCode::kUnsupported,
                "{}: rules {} apply to this problem and leave no kernel: what one forces, another "
                "forbids",
                state_->file.file, names_of(rules));
  }
  CUBIST_ASSIGN_OR_RETURN(KernelTable table, KernelTable::build(state_->packs, barred));
  return std::make_unique<const KernelTable>(std::move(table));
}

Result<const KernelTable*> Overrides::table_for(const AttentionProblem& problem,
                                                const DeviceProfile& device) const {
  const RuleNumbers rules = applying(problem, device);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  auto& kept = state_->tables[rules];
  if (kept == nullptr) {
    auto built = build_table(rules);
    if (!built) return forward_error(built);
    kept = std::move(*built);
  }
  return kept.get();
}

Result<Selection> Overrides::select(const AttentionProblem& problem, const DeviceProfile& device,
                                    const selector::SelectOptions& options) const {
  CUBIST_ASSIGN_OR_RETURN(const KernelTable* table, table_for(problem, device));
  Result<Selection> selection = selector::select(*table, problem, device, options);
  if (selection) return selection;
  const std::string context = context_of(problem, device);
  if (context.empty()) return selection;
  return forward_error(selection, context);
}

std::string Overrides::context_of(const AttentionProblem& problem,
                                  const DeviceProfile& device) const {
  const RuleNumbers rules = applying(problem, device);
  if (rules.empty()) return {};
  return fmt::format("with override rules {} of {}", names_of(rules), state_->file.file);
}

std::vector<std::string> Overrides::describe(const AttentionProblem& problem,
                                             const DeviceProfile& device) const {
  std::vector<std::string> sentences;
  const Rule* forces = nullptr;
  for (const std::size_t number : applying(problem, device)) {
    const Rule& rule = state_->file.rules[number];
    std::string text = "rule " + in_quotes(rule.name);
    if (!rule.forbid.empty()) text += " forbids " + rule.forbid.describe();
    if (!rule.force.empty() && forces == nullptr) {
      text += fmt::format("{} forces {}", rule.forbid.empty() ? "" : " and", rule.force.describe());
      forces = &rule;
    } else if (!rule.force.empty()) {
      text += fmt::format("; its force does not count, as rule {} comes first",
                          in_quotes(forces->name));
    }
    sentences.push_back(with_reason(text, rule.reason));
  }
  return sentences;
}

Result<selector::Explanation> Overrides::explain(const AttentionProblem& problem,
                                                 const DeviceProfile& device,
                                                 const selector::SelectOptions& options) const {
  CUBIST_ASSIGN_OR_RETURN(const KernelTable* table, table_for(problem, device));
  CUBIST_ASSIGN_OR_RETURN(selector::Explanation explanation,
                          selector::explain(*table, problem, device, options));
  for (std::string& sentence : describe(problem, device)) {
    explanation.request.push_back({"override", std::move(sentence)});
  }
  if (const std::string context = context_of(problem, device);
      explanation.refusal && !context.empty()) {
    explanation.refusal = std::move(*explanation.refusal).with_context(context);
  }
  return explanation;
}

std::vector<std::int32_t> Overrides::ends_in(std::string_view field) const {
  std::vector<std::int32_t> ends;
  const auto add = [&](std::int64_t end) {
    if (end >= 0 && end < INT32_MAX) ends.push_back(static_cast<std::int32_t>(end));
  };
  for (const Rule& rule : state_->file.rules) {
    for (const ProblemCondition& condition : rule.when) {
      if (condition.field() != field) continue;
      for (const NumberRange& range : condition.numbers()) {
        if (range.min != INT64_MIN) add(range.min - 1);
        add(range.max);
      }
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

}  // namespace cubist::overrides
