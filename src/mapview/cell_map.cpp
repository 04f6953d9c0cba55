#include "mapview/cell_map.h"

#include <algorithm>
#include <unordered_map>

#include "selector/cost_model.h"
#include "selector/fallback.h"
#include "selector/request.h"
#include "selector/serves.h"

namespace cubist::mapview {
namespace {

class MapMaker {
 public:
  MapMaker(const selector::KernelTable& table, const workingset::Query& query)
      : plain_(table), query_(query), options_(workingset::options_of(query)) {
    device_ = query.device;
    device_.max_active_clusters.fill(-1);
  }

  Cell make_cell(const AttentionProblem& problem) {
    Cell cell;
    const auto table = workingset::table_at(plain_, query_, problem);
    if (!table) return cell;
    if (!selector::select_into(**table, problem, device_, options_, selection_)) return cell;
    const LaunchPlan& plan = selection_.best();
    cell.kernel = number_of(plan.record);
    cell.fallback = plan.fallback;
    cell.grid = plan.grid;
    cell.cluster = plan.cluster[0];
    cell.num_ctas_kv = plan.num_ctas_kv;
    if (plan.family == KernelFamily::kTrtllmGenFmha) add_times(**table, problem, plan, cell);
    return cell;
  }

  std::vector<const KernelRecord*> take_kernels() { return std::move(kernels_); }

 private:
  std::int32_t number_of(const KernelRecord* record) {
    const auto [at, added] =
        numbers_.try_emplace(record, static_cast<std::int32_t>(kernels_.size()));
    if (added) kernels_.push_back(record);
    return at->second;
  }

  void add_times(const selector::KernelTable& table, const AttentionProblem& problem,
                 const LaunchPlan& plan, Cell& cell) {
    selector::Request request;
    if (!selector::prepare_request(problem, device_, request)) return;
    const selector::PackTable* pack = pack_of(table, *plan.record);
    if (pack == nullptr) return;
    const KernelTraits& traits = plan.record->traits;
    selector::CtaGrid grid;
    if (selector::find_misfits(request, traits, plan.revision, false, grid).none()) {
      cell.time = selector::modelled_time(selector::visible_kv_len(request, traits),
                                          request.num_sms, traits.tile_q, traits.step_kv, grid);
    }
    const selector::RankedKernels ranked = selector::rank_all_serving_kernels(*pack, request);
    for (std::uint32_t i = 0; i < ranked.count; ++i) {
      if (ranked.kernels[i].record == plan.record) continue;
      cell.runner_up = number_of(ranked.kernels[i].record);
      cell.runner_up_time = ranked.kernels[i].time;
      return;
    }
  }

  static const selector::PackTable* pack_of(const selector::KernelTable& table,
                                            const KernelRecord& record) {
    for (const selector::PackTable& pack : table.packs()) {
      const auto kernels = pack.pack().kernels;
      if (!kernels.empty() && &record >= kernels.data() &&
          &record < kernels.data() + kernels.size()) {
        return &pack;
      }
    }
    return nullptr;
  }

  const selector::KernelTable& plain_;
  const workingset::Query& query_;
  selector::SelectOptions options_;
  DeviceProfile device_;
  Selection selection_;
  std::vector<const KernelRecord*> kernels_;
  std::unordered_map<const KernelRecord*, std::int32_t> numbers_;
};

Status check_axes(const workingset::Query& query, const workingset::ProblemClass& cls,
                  const Axes& axes) {
  if (axes.cells() == 0 || axes.cells() > kMaxCells) {
    return fail(StatusCode::kInvalidArgument,
                "the map would have {} cells ({} batches x {} max_q_len x {} max_kv_len); it takes "
                "1..{}: narrow a range, or give fewer rows or columns",
                axes.cells(), axes.batch.size(), axes.max_q_len.size(), axes.max_kv_len.size(),
                kMaxCells);
  }
  workingset::Query ends = query;
  ends.classes = {cls};
  ends.batch = {{axes.batch.front(), axes.batch.back()}};
  ends.max_q_len = {{axes.max_q_len.front(), axes.max_q_len.back()}};
  ends.max_kv_len = {{axes.max_kv_len.front(), axes.max_kv_len.back()}};
  return workingset::validate_query(ends);
}

}  // namespace

Result<CellMap> make_cell_map(const selector::KernelTable& table, const workingset::Query& query,
                              const workingset::ProblemClass& cls, const Axes& axes) {
  CUBIST_RETURN_IF_ERROR(check_axes(query, cls, axes));
  CellMap map;
  map.label = cls.label;
  map.axes = axes;
  map.cells.reserve(axes.cells());
  MapMaker maker(table, query);
  AttentionProblem problem = cls.problem;
  for (const std::int32_t max_q_len : axes.max_q_len) {
    problem.max_q_len = max_q_len;
    for (const std::int32_t batch : axes.batch) {
      problem.batch = batch;
      for (const std::int32_t max_kv_len : axes.max_kv_len) {
        problem.max_kv_len = max_kv_len;
        map.cells.push_back(maker.make_cell(problem));
      }
    }
  }
  map.kernels = maker.take_kernels();
  return map;
}

}  // namespace cubist::mapview
