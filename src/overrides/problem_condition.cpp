#include "overrides/problem_condition.h"

#include <algorithm>
#include <array>
#include <optional>

#include "document/json_text.h"
#include "selector/validate.h"

namespace cubist::overrides {
namespace {

using P = AttentionProblem;
using D = DeviceProfile;

constexpr std::array<std::string_view, 24> kMatchable = {
    "batch",     "causal",     "chunk_size",  "dtype_k",      "dtype_kv",       "dtype_o",
    "dtype_q",   "dtype_v",    "head_dim_qk", "head_dim_vo",  "is_mla",         "kv_layout",
    "lse",       "max_kv_len", "max_q_len",   "num_kv_heads", "num_q_heads",    "num_sms",
    "page_size", "phase",      "sinks",       "sm",           "sparse_dynamic", "sparse_mla_topk"};

struct FieldValue {
  std::optional<std::int64_t> number;
  std::string word;
};

/// A field's value; neither number nor word for what cannot be matched.
struct ValueReader {
  const ProblemAndDevice& value;

  FieldValue operator()(std::int32_t P::*m) const { return {value.problem.*m, {}}; }
  FieldValue operator()(std::int64_t P::*m) const { return {value.problem.*m, {}}; }
  FieldValue operator()(std::uint32_t D::*m) const { return {value.device.*m, {}}; }
  FieldValue operator()(std::int32_t D::*m) const { return {value.device.*m, {}}; }
  FieldValue operator()(bool P::*m) const { return {{}, value.problem.*m ? "true" : "false"}; }
  FieldValue operator()(Dtype P::*m) const {
    return {{}, std::string(to_string(value.problem.*m))};
  }
  FieldValue operator()(Phase P::*m) const {
    return {{}, std::string(to_string(value.problem.*m))};
  }
  FieldValue operator()(KvLayout P::*m) const {
    return {{}, std::string(to_string(value.problem.*m))};
  }
  FieldValue operator()(ProblemField::BothKvTypes) const {
    if (value.problem.dtype_k != value.problem.dtype_v) return {{}, "different"};
    return (*this)(&P::dtype_k);
  }
  template <class Other>
  FieldValue operator()(Other) const {
    return {};
  }
};

bool is_number_field(const ProblemField& field) {
  const ProblemAndDevice any;
  return std::visit(ValueReader{any}, field.member).number.has_value();
}

/// What the selector says against any problem with this value; empty if some problem has it.
std::string objection(const ProblemField& field, std::int64_t number) {
  ProblemAndDevice probe;
  probe.device.sm = 100;
  probe.device.num_sms = 148;
  probe.problem.phase = Phase::kContext;  // decode has narrower rules of its own
  probe.problem.num_kv_heads = 1;         // divides any number of query heads
  probe.problem.num_q_heads = 1;
  Status status = set_field(field, std::to_string(number), probe);
  if (status) status = selector::validate_problem(probe.problem);
  if (status) status = selector::validate_device(probe.device);
  // An objection to another field or to several is one to the rest of the probe.
  if (status || !status.error().message().starts_with(fmt::format("{} is ", field.name))) return {};
  return status.error().message();
}

/// Looks at the ends, 0 and the powers of two: each field's values are powers of two or multiples
/// of a small number between two limits, so a range that holds a possible value has one of these.
void check_possible(const ProblemField& field, const NumberRange& range, const DocumentNode& node) {
  constexpr std::int64_t kMost = INT32_MAX;
  const std::int64_t low = std::max<std::int64_t>(range.min, 0);
  const std::int64_t high = std::min(range.max, kMost);
  if (range.min == range.max) {
    if (const std::string text = objection(field, range.min); !text.empty()) node.complain(text);
    return;
  }
  std::vector<std::int64_t> candidates = {low, high, 0};
  for (std::int64_t power = 1; power <= kMost; power *= 2) candidates.push_back(power);
  for (const std::int64_t one : candidates) {
    if (one >= range.min && one <= range.max && objection(field, one).empty()) return;
  }
  const std::int64_t end = range.max < kMost ? range.max : range.min;
  node.complain(fmt::format("no value in this range is possible: {}", objection(field, end)));
}

void read_number(const ProblemField& field, const DocumentNode& node,
                 std::vector<NumberRange>& out) {
  constexpr std::int64_t kLeast = -1;
  constexpr std::int64_t kMost = INT32_MAX;
  NumberRange range;
  if (node.is_object()) {
    node.allow_only({"min", "max"});
    node.member("min").read_integer(range.min, kLeast, kMost);
    node.member("max").read_integer(range.max, kLeast, kMost);
    if (range.max < range.min) {
      node.complain(
          fmt::format("max is {} and min is {}: nothing is in between", range.max, range.min));
    } else if (node.keys().empty()) {
      node.complain("is empty; give min, max or both");
    } else {
      check_possible(field, range, node);
    }
  } else if (node.read_integer(range.min, kLeast, kMost)) {
    range.max = range.min;
    check_possible(field, range, node);
  }
  out.push_back(range);
}

/// A word, checked by setting the field to it.
void read_word(const ProblemField& field, const DocumentNode& node, std::vector<std::string>& out) {
  std::string word;
  bool flag = false;
  if (node.is_string()) {
    node.read(word);
  } else if (node.read(flag)) {
    word = flag ? "true" : "false";
  } else {
    return;
  }
  ProblemAndDevice ignored;
  if (const Status known = set_field(field, word, ignored); !known) {
    node.complain(known.error().message());
    return;
  }
  out.push_back(std::move(word));
}

}  // namespace

ProblemCondition ProblemCondition::read(const ProblemField& field, const DocumentNode& node) {
  ProblemCondition condition;
  condition.field_ = &field;
  const std::vector<DocumentNode> items =
      node.is_array() ? node.items() : std::vector<DocumentNode>{node};
  if (items.empty()) node.complain("is empty; name at least one value, or leave the key out");
  for (const DocumentNode& item : items) {
    if (is_number_field(field)) {
      read_number(field, item, condition.numbers_);
    } else {
      read_word(field, item, condition.words_);
    }
  }
  return condition;
}

bool ProblemCondition::holds(const ProblemAndDevice& value) const {
  const FieldValue found = std::visit(ValueReader{value}, field_->member);
  if (found.number) {
    return std::any_of(numbers_.begin(), numbers_.end(), [&](const NumberRange& range) {
      return *found.number >= range.min && *found.number <= range.max;
    });
  }
  return std::find(words_.begin(), words_.end(), found.word) != words_.end();
}

std::string ProblemCondition::describe() const {
  std::vector<std::string> values = words_;
  for (const NumberRange& range : numbers_) {
    if (range.min == range.max) {
      values.push_back(std::to_string(range.min));
    } else if (range.min == INT64_MIN) {
      values.push_back(fmt::format("up to {}", range.max));
    } else if (range.max == INT64_MAX) {
      values.push_back(fmt::format("from {}", range.min));
    } else {
      values.push_back(fmt::format("{}..{}", range.min, range.max));
    }
  }
  return fmt::format("{} {}", field_->name, joined(values, " or "));
}

std::vector<ProblemCondition> read_conditions(const DocumentNode& node) {
  std::vector<ProblemCondition> conditions;
  if (node.present() && !node.is_object()) node.complain("expected an object");
  node.allow_only({kMatchable.begin(), kMatchable.end()});
  for (const std::string& key : node.keys()) {
    const ProblemField* field = find_problem_field(key);
    if (field == nullptr) continue;
    conditions.push_back(ProblemCondition::read(*field, node.member(key)));
  }
  return conditions;
}

}  // namespace cubist::overrides
