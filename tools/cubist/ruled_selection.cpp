#include "ruled_selection.h"

#include <vector>

namespace cubist::tools {

Result<RuledSelection> RuledSelection::open(const selector::KernelTable& table,
                                            const std::string& overrides_path) {
  RuledSelection ruled(table);
  if (overrides_path.empty()) return ruled;
  CUBIST_ASSIGN_OR_RETURN(overrides::RuleFile file, overrides::load_rules(overrides_path));
  std::vector<selector::PackView> packs;
  for (const selector::PackTable& pack : table.packs()) packs.push_back(pack.pack());
  CUBIST_ASSIGN_OR_RETURN(ruled.rules_,
                          overrides::Overrides::bind(std::move(file), packs, table.barred()));
  return ruled;
}

Status RuledSelection::select_into(const AttentionProblem& problem, const DeviceProfile& device,
                                   const selector::SelectOptions& options,
                                   Selection& selection) const {
  if (!rules_) return selector::select_into(*table_, problem, device, options, selection);
  CUBIST_ASSIGN_OR_RETURN(selection, rules_->select(problem, device, options));
  return {};
}

Result<selector::Explanation> RuledSelection::explain(
    const AttentionProblem& problem, const DeviceProfile& device,
    const selector::SelectOptions& options) const {
  if (rules_) return rules_->explain(problem, device, options);
  return selector::explain(*table_, problem, device, options);
}

}  // namespace cubist::tools
