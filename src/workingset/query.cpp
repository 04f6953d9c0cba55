#include "workingset/query.h"

#include "selector/request.h"

namespace cubist::workingset {
namespace {

double total_size(const std::vector<Range>& ranges) {
  double size = 0;
  for (const Range& range : ranges) size += static_cast<double>(range.size());
  return size;
}

Status check_end(const ProblemClass& cls, const DeviceProfile& device, std::int32_t batch,
                 std::int32_t max_q_len, std::int32_t max_kv_len) {
  AttentionProblem problem = cls.problem;
  problem.batch = batch;
  problem.max_q_len = max_q_len;
  problem.max_kv_len = max_kv_len;
  selector::Request request;
  Status prepared = selector::prepare_request(problem, device, request);
  if (prepared) return {};
  return forward_error(
      prepared, fmt::format("the range contains a problem that no call can have ({}; batch {}, "
                            "max_q_len {}, max_kv_len {})",
                            cls.label, batch, max_q_len, max_kv_len));
}

}  // namespace

double Query::num_problems() const {
  return static_cast<double>(classes.size()) * total_size(batch) * total_size(max_q_len) *
         total_size(max_kv_len);
}

Result<const selector::KernelTable*> table_at(const selector::KernelTable& plain,
                                              const Query& query, const AttentionProblem& problem) {
  if (query.overrides == nullptr) return &plain;
  return query.overrides->table_for(problem, query.device);
}

selector::SelectOptions options_of(const Query& query) {
  selector::SelectOptions options;
  options.strict = query.strict;
  options.rules = query.rules;
  return options;
}

Status validate_query(const Query& query) {
  CUBIST_RETURN_IF_ERROR(validate_ranges("batch", query.batch));
  CUBIST_RETURN_IF_ERROR(validate_ranges("max_q_len", query.max_q_len));
  CUBIST_RETURN_IF_ERROR(validate_ranges("max_kv_len", query.max_kv_len));
  if (query.classes.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "the query has no kinds of problems: none of the model's layers is asked for in "
                "the phases given");
  }
  // Every check of a problem is an upper bound that grows with each length: the ends stand for all.
  for (const ProblemClass& cls : query.classes) {
    CUBIST_RETURN_IF_ERROR(check_end(cls, query.device, query.batch.front().first,
                                     query.max_q_len.front().first,
                                     query.max_kv_len.front().first));
    CUBIST_RETURN_IF_ERROR(check_end(cls, query.device, query.batch.back().last,
                                     query.max_q_len.back().last, query.max_kv_len.back().last));
  }
  return {};
}

}  // namespace cubist::workingset
