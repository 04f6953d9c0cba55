#include "overrides/kernel_filter.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "document/json_text.h"

namespace cubist::overrides {
namespace {

bool is_count(std::string_view text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}
bool is_truth(std::string_view text) { return text == "true" || text == "false"; }
bool is_name(std::string_view text) { return !text.empty(); }
bool is_digest(std::string_view text) { return Sha256Digest::parse(text).has_value(); }

std::string number(std::int64_t value) { return std::to_string(value); }
std::string truth(bool value) { return value ? "true" : "false"; }

constexpr std::string_view kCount = "a whole number from 0";
constexpr std::string_view kTruth = "true or false";

using R = KernelRecord;

const std::array<FilterField, 13> kFields = {{
    {"kernel", [](const R& r) { return std::string(r.name); }, is_name, "a kernel's name"},
    {"sha256", [](const R& r) { return r.sha256.hex(); }, is_digest, "64 hexadecimal digits"},
    {"tile_q", [](const R& r) { return number(r.traits.tile_q); }, is_count, kCount},
    {"tile_kv", [](const R& r) { return number(r.traits.tile_kv); }, is_count, kCount},
    {"step_q", [](const R& r) { return number(r.traits.step_q); }, is_count, kCount},
    {"step_kv", [](const R& r) { return number(r.traits.step_kv); }, is_count, kCount},
    {"head_dim_per_cta_v", [](const R& r) { return number(r.traits.head_dim_per_cta_v); }, is_count,
     kCount},
    {"multi_ctas_kv_mode",
     [](const R& r) { return std::string(to_string(r.traits.multi_ctas_kv_mode)); },
     [](std::string_view text) { return parse_multi_ctas_kv_mode(text).has_value(); },
     "off, gmem, gmem_separate or cga_smem"},
    {"kernel_type", [](const R& r) { return std::string(to_string(r.traits.kernel_type)); },
     [](std::string_view text) { return parse_kernel_type(text).has_value(); },
     "context, swaps or keeps"},
    {"scheduler", [](const R& r) { return std::string(to_string(r.traits.scheduler)); },
     [](std::string_view text) { return parse_tile_scheduler(text).has_value(); },
     "static or persistent"},
    {"two_cta_mma", [](const R& r) { return truth(r.traits.two_cta_mma); }, is_truth, kTruth},
    {"skip_softmax", [](const R& r) { return truth(r.traits.skip_softmax); }, is_truth, kTruth},
    {"arch", [](const R& r) { return to_string(r.traits.arch); },
     [](std::string_view text) { return parse_sm_arch(text).has_value(); },
     "sm_100a, sm_100f, ..."},
}};

/// A value as the text that kernels are compared with; complains about any other.
bool read_value(const FilterField& field, const DocumentNode& node, std::string& out) {
  std::int64_t count = 0;
  bool flag = false;
  if (node.is_number()) {
    if (!node.read_integer(count, 0, INT32_MAX)) return false;
    out = number(count);
  } else if (node.is_string()) {
    node.read(out);
  } else if (node.read(flag)) {
    out = truth(flag);
  } else {
    return false;
  }
  // A number where a word belongs, and the other way round, is no value either.
  const bool takes_words = field.accepted != kCount && field.accepted != kTruth;
  if (node.is_string() != takes_words || !field.is_value(out)) {
    node.complain(fmt::format("found {}, expected {}", in_quotes(out), field.accepted));
    return false;
  }
  return true;
}

const FilterField* find_field(std::string_view name) {
  const auto* at = std::find_if(kFields.begin(), kFields.end(),
                                [&](const FilterField& field) { return field.name == name; });
  return at == kFields.end() ? nullptr : at;
}

}  // namespace

KernelFilter KernelFilter::read(const DocumentNode& node) {
  KernelFilter filter;
  std::vector<std::string_view> known;
  known.reserve(std::size(kFields));
  for (const FilterField& field : kFields) known.push_back(field.name);
  node.allow_only(known);
  for (const std::string& key : node.keys()) {
    const FilterField* field = find_field(key);
    if (field == nullptr) continue;
    Condition condition{field, {}};
    const DocumentNode value = node.member(key);
    const std::vector<DocumentNode> items =
        value.is_array() ? value.items() : std::vector<DocumentNode>{value};
    for (const DocumentNode& item : items) {
      std::string text;
      if (read_value(*field, item, text)) condition.values.push_back(std::move(text));
    }
    if (items.empty()) value.complain("is empty; name at least one value, or leave the key out");
    filter.conditions_.push_back(std::move(condition));
  }
  if (filter.empty())
    node.complain("names no kernels; give tile_q, multi_ctas_kv_mode, kernel, ...");
  return filter;
}

bool KernelFilter::matches(const KernelRecord& record) const {
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
    const std::string value = condition.field->value(record);
    return std::find(condition.values.begin(), condition.values.end(), value) !=
           condition.values.end();
  });
}

std::string KernelFilter::describe() const {
  std::string out;
  for (const Condition& condition : conditions_) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", condition.field->name,
                       joined(condition.values, " or "));
  }
  return out;
}

}  // namespace cubist::overrides
