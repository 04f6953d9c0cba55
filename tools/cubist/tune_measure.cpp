#include "tune_measure.h"

#include <algorithm>
#include <random>

#include "model/derived_problem.h"
#include "selector/rules_cubist_decode.h"

namespace cubist::tools {
namespace {

using tuning::Measured;

// More than any GPU's cache has: as much lies between two uses of a place, where memory allows.
constexpr std::int64_t kColdBytes = 256 << 20;
constexpr std::int64_t kMaxPlaces = 16;
constexpr int kWarmUps = 3;
constexpr int kLaunches = 16;
constexpr int kRepeats = 3;

std::int64_t bytes_of(const AttentionProblem& problem, std::int64_t elements) {
  return elements * dtype_bits(problem.dtype_k) / 8;
}

/// Of one page of K; V has as many or none.
std::int64_t page_bytes(const AttentionProblem& problem) {
  return bytes_of(problem,
                  std::int64_t{problem.num_kv_heads} * problem.page_size * problem.head_dim_qk);
}

std::vector<std::int32_t> splits_of(const selector::DecodeOption& option, tuning::Grid grid,
                                    const selector::Request& request) {
  std::vector<std::int32_t> splits = {option.split.num_ctas_kv};
  if (option.record->traits.scheduler != TileScheduler::kStatic) return splits;
  for (const std::int32_t split : tuning::grid_splits(grid)) {
    const bool worth = split == 1 || split * 256 <= request.max_kv_len + 255;
    if (worth && split != option.split.num_ctas_kv) splits.push_back(split);
  }
  return splits;
}

}  // namespace

Status TuneMeasure::grow(Arena& arena, std::uint64_t bytes) {
  if (bytes <= arena.bytes) return {};
  CUBIST_ASSIGN_OR_RETURN(arena.address, session_.allocate(bytes));
  arena.bytes = bytes;
  return {};
}

/// K and V once for all problems, with numbers between -2 and 2 in every type that is measured.
Status TuneMeasure::prepare_memory(const std::vector<AttentionProblem>& problems,
                                   std::int64_t memory_bytes) {
  std::int64_t most = 0;
  for (const AttentionProblem& problem : problems) {
    most = std::max(most, tuning::kv_bytes(problem));
  }
  const std::int64_t both = std::min(memory_bytes, std::max(most, 2 * kColdBytes));
  CUBIST_RETURN_IF_ERROR(grow(k_, static_cast<std::uint64_t>(both / 2)));
  CUBIST_RETURN_IF_ERROR(grow(v_, static_cast<std::uint64_t>(both / 2)));
  std::mt19937 random(1);
  std::vector<std::uint32_t> words(1 << 20);
  for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(random()) & 0xbfbfbfbf;
  for (const Arena& arena : {k_, v_}) {
    for (std::uint64_t at = 0; at < arena.bytes;) {
      const std::uint64_t part = std::min<std::uint64_t>(arena.bytes - at, words.size() * 4);
      CUBIST_RETURN_IF_ERROR(driver_.check(
          driver_.table().cuMemcpyHtoD(arena.address + at, words.data(), part), "cuMemcpyHtoD"));
      at += part;
    }
  }
  return {};
}

/// Where the problem's tensors lie; completes the problem.
Result<launcher::CallArgs> TuneMeasure::arrange(AttentionProblem& problem) {
  const std::int64_t pages_per_seq =
      (std::int64_t{problem.max_kv_len} + problem.page_size - 1) / problem.page_size;
  const std::int64_t pages = pages_per_seq * problem.batch;
  const auto room = static_cast<std::int64_t>(k_.bytes) / page_bytes(problem);
  places_ = std::clamp<std::int64_t>(room / pages, 1, kMaxPlaces);
  problem.num_pages = places_ * pages;
  std::vector<std::int32_t> table(static_cast<std::size_t>(problem.num_pages));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  table_bytes_ = static_cast<std::uint64_t>(pages) * sizeof(std::int32_t);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(problem.batch),
                                          problem.max_kv_len);
  const std::int64_t rows = std::int64_t{problem.batch} * problem.max_q_len * problem.num_q_heads;
  CUBIST_RETURN_IF_ERROR(grow(q_, static_cast<std::uint64_t>(rows * problem.head_dim_qk) * 2));
  CUBIST_RETURN_IF_ERROR(grow(o_, static_cast<std::uint64_t>(rows * problem.head_dim_qk) * 2));
  CUBIST_RETURN_IF_ERROR(grow(table_, table.size() * sizeof(std::int32_t)));
  CUBIST_RETURN_IF_ERROR(grow(lengths_, lengths.size() * sizeof(std::int32_t)));
  const auto copy = [&](const Arena& to, const std::vector<std::int32_t>& from) {
    return driver_.check(
        driver_.table().cuMemcpyHtoD(to.address, from.data(), from.size() * sizeof(std::int32_t)),
        "cuMemcpyHtoD");
  };
  CUBIST_RETURN_IF_ERROR(copy(table_, table));
  CUBIST_RETURN_IF_ERROR(copy(lengths_, lengths));
  launcher::CallArgs args;
  args.q = q_.address;
  args.k = k_.address;
  args.v = problem.is_mla ? 0 : v_.address;
  args.o = o_.address;
  args.block_table = table_.address;
  args.seq_lens_kv = lengths_.address;
  return args;
}

/// Microseconds of a launch: the median of some rows of launches.
Result<double> TuneMeasure::measure_plan(const AttentionProblem& problem, const LaunchPlan& plan,
                                         launcher::CallArgs args) {
  Selection selection;
  selection.num_plans = 1;
  selection.plans[0] = plan;
  runtime::Selected selected(runtime_, problem, device_, selection);
  CUBIST_ASSIGN_OR_RETURN(const runtime::WorkspaceNeed need, selected.workspace());
  CUBIST_RETURN_IF_ERROR(grow(workspace_, need.size));
  args.workspace = need.size == 0 ? 0 : workspace_.address;
  args.workspace_size = need.size;
  CUBIST_RETURN_IF_ERROR(selected.clear_workspace(args.workspace, need.size, nullptr));
  CUBIST_RETURN_IF_ERROR(selected.prepare());
  std::int64_t place = 0;
  const auto launch = [&](int count) -> Status {
    for (int i = 0; i < count; ++i, place = (place + 1) % places_) {
      args.block_table = table_.address + static_cast<std::uint64_t>(place) * table_bytes_;
      CUBIST_RETURN_IF_ERROR(selected.launch(args, nullptr));
    }
    return {};
  };
  CUBIST_RETURN_IF_ERROR(launch(kWarmUps));
  std::vector<double> seen;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    CUBIST_ASSIGN_OR_RETURN(const double us, session_.time([&] { return launch(kLaunches); }));
    if (us <= 0) {
      return fail(StatusCode::kUnsupported, "the driver has no events to take the time with");
    }
    seen.push_back(us / kLaunches);
  }
  std::sort(seen.begin(), seen.end());
  return seen[seen.size() / 2];
}

Status TuneMeasure::measure_problem(std::size_t number, AttentionProblem problem,
                                    std::vector<Measured>& rows) {
  CUBIST_ASSIGN_OR_RETURN(const launcher::CallArgs args, arrange(problem));
  Measured row;
  row.problem = number;
  CUBIST_RETURN_IF_ERROR(selector::prepare_request(problem, device_, row.request));
  for (const selector::PackTable& pack : runtime_->kernels().packs()) {
    if (pack.pack().revision != HeuristicRevision::kCubistDecode_1) continue;
    for (selector::DecodeOption option : selector::decode_options(pack, row.request)) {
      if (option.record == nullptr) continue;
      row.record = option.record;
      row.columns = option.split.columns;
      for (const std::int32_t split : splits_of(option, grid_, row.request)) {
        option.split.num_ctas_kv = row.num_ctas_kv = split;
        LaunchPlan plan;
        selector::fill_decode_plan(pack.pack(), row.request, option, plan);
        CUBIST_ASSIGN_OR_RETURN(row.us, measure_plan(with_derived_fields(problem), plan, args));
        rows.push_back(row);
      }
    }
  }
  return {};
}

Result<std::vector<Measured>> TuneMeasure::run(const Options& options) {
  grid_ = options.grid;
  const std::vector<AttentionProblem> problems =
      tuning::grid_problems(options.grid, options.memory_bytes);
  CUBIST_RETURN_IF_ERROR(prepare_memory(problems, options.memory_bytes));
  std::vector<Measured> rows;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (options.cancel != nullptr && *options.cancel) {
      return fail(StatusCode::kInterrupted, "stopped after {} of {} problems; nothing was written",
                  i, problems.size());
    }
    if (options.progress) options.progress(i, problems.size());
    CUBIST_RETURN_IF_ERROR(measure_problem(i, problems[i], rows));
  }
  if (options.progress) options.progress(problems.size(), problems.size());
  if (rows.empty()) {
    return fail(StatusCode::kDeviceMismatch,
                "'{}' is sm_{}: no decode kernel of the manifest serves any of the {} problems of "
                "the grid there",
                device_.name, device_.sm, problems.size());
  }
  return rows;
}

}  // namespace cubist::tools
