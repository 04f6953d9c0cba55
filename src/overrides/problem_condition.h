#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/problem_fields.h"
#include "document/document.h"

namespace cubist::overrides {

/// Whole numbers, both ends included.
struct NumberRange {
  std::int64_t min = INT64_MIN;
  std::int64_t max = INT64_MAX;
};

/// What a problem must have in one field for a rule to apply: one of some words, or a number in one
/// of some ranges.
class ProblemCondition {
 public:
  /// Reads "e4m3", true, 64, [64, 128], {"min": 1, "max": 8}, or a list of these; complains in the
  /// document.
  static ProblemCondition read(const ProblemField& field, const DocumentNode& node);

  bool holds(const ProblemAndDevice& value) const;
  std::string_view field() const { return field_->name; }
  const std::vector<NumberRange>& numbers() const { return numbers_; }
  std::string describe() const;

 private:
  const ProblemField* field_ = nullptr;
  std::vector<NumberRange> numbers_;
  std::vector<std::string> words_;
};

/// All of a rule's conditions: {"phase": "decode", "batch": {"max": 8}}. Fields that follow from
/// the lengths, and those that selection does not look at, cannot be named.
std::vector<ProblemCondition> read_conditions(const DocumentNode& node);

}  // namespace cubist::overrides
