#include "overrides/kernel_check.h"

#include <algorithm>
#include <unordered_set>

#include "document/json_text.h"

namespace cubist::overrides {
namespace {

using selector::PackView;

template <class Test>
bool any_kernel(std::span<const PackView> packs, Test test) {
  return std::any_of(packs.begin(), packs.end(), [&](const PackView& pack) {
    return std::any_of(pack.kernels.begin(), pack.kernels.end(), test);
  });
}

Status check_bars(const RuleFile& file, std::span<const PackView> packs) {
  std::unordered_set<Sha256Digest> known;
  for (const PackView& pack : packs) {
    for (const KernelRecord& record : pack.kernels) known.insert(record.sha256);
  }
  for (const Bar& bar : file.bars) {
    if (known.count(bar.sha256) != 0) continue;
    return fail(StatusCode::kInvalidArgument,
                "{}: bar: no kernel of the manifest has the sha256 {}; the rule file may be meant "
                "for another release",
                file.file, bar.sha256.hex());
  }
  return {};
}

Status check_filter(const RuleFile& file, const Rule& rule, std::string_view verb,
                    const KernelFilter& filter, std::span<const PackView> packs) {
  const auto matches = [&](const KernelRecord& record) { return filter.matches(record); };
  if (filter.empty() || any_kernel(packs, matches)) return {};
  return fail(
      StatusCode::kInvalidArgument,
      "{}: rule {}: {} matches no kernel of the manifest: {}. 'cubist list' shows what there "
      "is",
      file.file, in_quotes(rule.name), verb, filter.describe());
}

/// Whether a kernel serves problems for which the condition holds, as far as one field tells.
/// Fields in which a kernel serves ranges, as lengths and head counts, always may.
bool may_hold(const ProblemCondition& condition, const KernelTraits& traits) {
  const std::string_view field = condition.field();
  if (field == "page_size" && traits.dynamic_page) return true;
  if (field == "dtype_o" && traits.dynamic_dtype_o) return true;
  constexpr std::string_view kFixed[] = {"dtype_q", "dtype_k",     "dtype_v",     "dtype_kv",
                                         "dtype_o", "head_dim_qk", "head_dim_vo", "page_size"};
  if (std::find(std::begin(kFixed), std::end(kFixed), field) == std::end(kFixed)) return true;
  ProblemAndDevice value;
  AttentionProblem& problem = value.problem;
  problem.dtype_q = traits.dtype_q;
  problem.dtype_k = traits.dtype_k;
  problem.dtype_v = traits.dtype_v;
  problem.dtype_o = traits.dtype_o;
  problem.head_dim_qk = traits.head_dim_qk;
  problem.head_dim_vo = traits.head_dim_vo;
  problem.page_size = traits.page_size;
  return condition.holds(value);
}

Status check_conditions(const RuleFile& file, const Rule& rule, std::span<const PackView> packs) {
  for (const ProblemCondition& condition : rule.when) {
    if (any_kernel(packs, [&](const KernelRecord& record) {
          return may_hold(condition, record.traits);
        })) {
      continue;
    }
    return fail(StatusCode::kInvalidArgument,
                "{}: rule {}: when: no kernel of the manifest serves a problem with {}; the rule "
                "would never apply",
                file.file, in_quotes(rule.name), condition.describe());
  }
  return {};
}

}  // namespace

Status check_against_kernels(const RuleFile& file, std::span<const PackView> packs) {
  CUBIST_RETURN_IF_ERROR(check_bars(file, packs));
  for (const Rule& rule : file.rules) {
    CUBIST_RETURN_IF_ERROR(check_filter(file, rule, "force", rule.force, packs));
    CUBIST_RETURN_IF_ERROR(check_filter(file, rule, "forbid", rule.forbid, packs));
    CUBIST_RETURN_IF_ERROR(check_conditions(file, rule, packs));
  }
  const bool has_decode = std::any_of(packs.begin(), packs.end(), [](const PackView& pack) {
    return pack.revision == HeuristicRevision::kCubistDecode_1;
  });
  if (file.decode_model && !has_decode) {
    return fail(
        StatusCode::kInvalidArgument,
        "{}: decode_model: no pack of the manifests has the revision {}, whose rules ask it",
        file.file, to_string(HeuristicRevision::kCubistDecode_1));
  }
  return {};
}

}  // namespace cubist::overrides
