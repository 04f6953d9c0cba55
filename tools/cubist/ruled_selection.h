#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "overrides/overrides.h"
#include "selector/select.h"

namespace cubist::tools {

/// Selection as the flags ask for it: from the packs alone, or under a rule file. Any number of
/// threads may use one.
class RuledSelection {
 public:
  /// table           outlives the object
  /// overrides_path  empty: no rules
  /// errors          those of load_rules and Overrides::bind
  static Result<RuledSelection> open(const selector::KernelTable& table,
                                     const std::string& overrides_path);

  Status select_into(const AttentionProblem& problem, const DeviceProfile& device,
                     const selector::SelectOptions& options, Selection& selection) const;
  Result<selector::Explanation> explain(const AttentionProblem& problem,
                                        const DeviceProfile& device,
                                        const selector::SelectOptions& options) const;
  /// nullptr: no rules
  const overrides::Overrides* overrides() const { return rules_ ? &*rules_ : nullptr; }

 private:
  explicit RuledSelection(const selector::KernelTable& table) : table_(&table) {}

  const selector::KernelTable* table_;
  std::optional<overrides::Overrides> rules_;
};

}  // namespace cubist::tools
