#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "overrides/kernel_filter.h"
#include "overrides/problem_condition.h"
#include "selector/decode_model.h"

namespace cubist::overrides {

/// A kernel that is never chosen.
struct Bar {
  Sha256Digest sha256;
  std::string reason;
};

/// For problems in which all of `when` holds: kernels to take nothing but, kernels not to take.
struct Rule {
  std::string name;
  std::string reason;
  std::vector<ProblemCondition> when;  ///< empty: every problem
  KernelFilter force;                  ///< empty: none
  KernelFilter forbid;

  bool applies(const ProblemAndDevice& value) const;
};

struct RuleFile {
  std::string file;
  std::vector<Bar> bars;
  std::vector<Rule> rules;
  /// Of the cubist-decode rules, in place of the shipped one.
  std::optional<selector::DecodeModel> decode_model;
};

/// Reads a rule file (docs/overrides.md), all or nothing.
/// errors  kInvalidArgument with file, place and what is wrong
Result<RuleFile> parse_rules(std::string_view text, std::string_view file_name);
Result<RuleFile> load_rules(const std::string& path);

}  // namespace cubist::overrides
