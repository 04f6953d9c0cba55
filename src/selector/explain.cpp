#include "selector/explain.h"

#include <algorithm>

#include "model/decode_params.h"
#include "selector/cost_model.h"
#include "selector/explain_steps.h"
#include "selector/rules_cubist_decode.h"

namespace cubist::selector {
namespace {

constexpr std::size_t kNearest = 5;

void explain_passes(const Request& request, const RuleTrace& trace, PackExplanation& out) {
  out.passes = trace.passes;
  for (std::size_t i = 0; i < trace.passes.size(); ++i) {
    describe_pass(request, trace.passes[i], i + 1, out.steps);
  }
}

/// A persistent kernel's CTAs are a grid of columns x groups for the whole batch; a static
/// kernel's, one of columns for each sequence.
std::string decode_ctas_text(const Request& request, const LaunchPlan& plan) {
  const bool persistent = plan.record->traits.scheduler == TileScheduler::kPersistent;
  const auto kv_heads = static_cast<std::uint32_t>(request.num_kv_heads);
  const auto q_ctas = static_cast<std::uint32_t>(plan.num_ctas_q);
  const std::uint32_t head_ctas =
      persistent ? plan.grid[0] / (q_ctas * kv_heads) : plan.grid[1] / kv_heads;
  std::string columns = fmt::format("{} KV heads", kv_heads);
  if (head_ctas > 1) columns += fmt::format(" x {} parts of their query heads", head_ctas);
  if (q_ctas > 1) columns += fmt::format(" x {} parts of the query tokens", q_ctas);
  if (persistent) {
    return fmt::format(
        "{} x {} groups of CTAs; the groups share the keys of all {} sequences "
        "evenly",
        columns, plan.grid[1], plan.batch);
  }
  return fmt::format("{} x {} sequences, each one's KV split over {}", columns, plan.batch,
                     plan.num_ctas_kv);
}

/// Among the serving kernels of the chosen one's scheduler alone: each scheduler has its own tiles.
std::string decode_tile_text(const Request& request, const KernelTraits& chosen) {
  const std::int64_t rows = tile_rows_of(request);
  std::string why = "of the persistent kernels the one of least modelled time";
  if (chosen.scheduler == TileScheduler::kStatic) {
    why = chosen.tile_q >= rows ? "the smallest of the static kernels that holds them all"
                                : "the largest of the static kernels; none holds them all";
  }
  if (request.batch_invariant && request.varlen_q) {
    return fmt::format("{} rows whatever the longest query is (batch_invariant): tile_q {}, {}",
                       rows, chosen.tile_q, why);
  }
  return fmt::format("{} heads x {} tokens = {} rows: tile_q {}, {}", request.heads_per_kv,
                     request.max_q_len, rows, chosen.tile_q, why);
}

void explain_decode(const PackTable& pack, const Request& request, const Selection& selection,
                    PackExplanation& out) {
  const LaunchPlan& plan = selection.best();
  for (const DecodeOption& option : decode_options(pack, request)) {
    if (option.record == nullptr) continue;
    const KernelTraits& traits = option.record->traits;
    const bool persistent = traits.scheduler == TileScheduler::kPersistent;
    out.steps.push_back(
        {"scheduler",
         fmt::format(
             "{}, tile_q {}, {} {}: modelled {:.1f} us{}{}", to_string(traits.scheduler),
             traits.tile_q, persistent ? "groups of CTAs" : "num_ctas_kv", option.split.num_ctas_kv,
             option.split.microseconds,
             persistent || request.batch_invariant ? "" : ", with a margin for unequal lengths",
             option.record == plan.record ? "  <- chosen" : "")});
  }
  if (request.batch_invariant) {
    out.steps.push_back(
        {"batch_invariant",
         fmt::format("static kernels alone; a sequence gets one CTA for {} of its own keys, up to "
                     "{}, whatever is beside it",
                     64 * kCubistDecodeInvariantTilesPerCta, plan.num_ctas_kv)});
  }
  out.steps.push_back({"model", "times by " + decode_model_of(pack.pack()).source});
  out.steps.push_back({"tile_q", decode_tile_text(request, plan.record->traits)});
  out.steps.push_back({"ctas", decode_ctas_text(request, plan)});
}

void list_tiles(const PackTable& pack, const Request& request, PackExplanation& out) {
  for (const std::uint32_t index : pack.group_members(pack.find_group(request.wanted))) {
    RankedKernel kernel;
    if (!rank_kernel(pack, request, pack.pack().kernels[index], kernel)) continue;
    const auto at =
        std::find_if(out.tiles.begin(), out.tiles.end(), [&](const RankedKernel& other) {
          return other.record->traits.tile_q <= kernel.record->traits.tile_q;
        });
    if (at == out.tiles.end() || at->record->traits.tile_q != kernel.record->traits.tile_q) {
      out.tiles.insert(at, kernel);
    } else if (ranks_before(kernel, *at)) {
      *at = kernel;
    }
  }
  for (const RankedKernel& kernel : out.tiles) {
    out.steps.push_back(
        {"tile_option",
         fmt::format("tile_q {:>3}: {} CTAs, KV split over {}, {} wave(s), modelled time {:.0f}",
                     kernel.record->traits.tile_q, kernel.grid.total(), kernel.grid.num_ctas_kv,
                     wave_count(kernel.grid, request.num_sms), static_cast<double>(kernel.time))});
  }
}

PackExplanation explain_pack(const PackTable& pack, const Request& request,
                             const DeviceProfile& device, const SelectOptions& options,
                             Explanation& out) {
  PackExplanation result;
  result.pack = pack.pack().name;
  result.revision = pack.pack().revision;
  if (!pack_fits_device(pack, request.sm)) {
    result.steps.push_back({"device", fmt::format("no kernels and rules for sm {}", request.sm)});
    return result;
  }
  if (Status entry = check_entry(pack.pack().revision, request); !entry) {
    result.steps.push_back({"entry", entry.error().message()});
    if (!out.refusal) out.refusal = std::move(entry.error());
    return result;
  }
  Selection selection;
  PackAnswer answer;
  RuleTrace trace;
  answer_from_pack(pack, request, device, options, &trace, selection, answer);
  explain_passes(request, trace, result);
  if (pack.pack().family == KernelFamily::kCubistDecode && selection.num_plans > 0) {
    explain_decode(pack, request, selection, result);
  }
  if (answer.refusal != RuleRefusal::kNone) {
    result.steps.push_back({"refusal", std::string(to_string(answer.refusal))});
  }
  if (pack.pack().family == KernelFamily::kTrtllmGenFmha) list_tiles(pack, request, result);
  if (selection.num_plans == 0) {
    if (!out.refusal) out.refusal = refusal_error(pack, request, answer, options.strict);
    result.nearest = find_nearest_kernels(pack, request, kNearest);
    return result;
  }
  if (selection.best().fallback != FallbackReason::kNone) {
    result.steps.push_back({"fallback", "the best kernel that serves, by modelled time"});
  }
  describe_selection(request, device, selection, result.steps);
  result.chose = true;
  out.selection = selection;
  return result;
}

float time_of(const Request& request, const LaunchPlan& plan) {
  const KernelTraits& traits = plan.record->traits;
  CtaGrid grid;
  grid.num_ctas_kv = plan.num_ctas_kv;
  grid.x = plan.grid[0];
  grid.y = plan.grid[1];
  grid.z = plan.grid[2];
  return modelled_time(visible_kv_len(request, traits), request.num_sms, traits.tile_q,
                       traits.step_kv, grid);
}

void find_runner_up(const PackTable& pack, const Request& request, Explanation& out) {
  if (pack.pack().family != KernelFamily::kTrtllmGenFmha) return;
  out.chosen_time = time_of(request, out.selection->best());
  const RankedKernels ranked = rank_all_serving_kernels(pack, request);
  for (std::uint32_t i = 0; i < ranked.count; ++i) {
    if (ranked.kernels[i].record == out.selection->best().record) continue;
    out.runner_up = ranked.kernels[i];
    return;
  }
}

/// Barred kernels that would serve otherwise.
std::vector<BarredNote> find_barred(const KernelTable& table, const Request& request) {
  std::vector<BarredNote> found;
  if (table.barred().empty()) return found;
  for (const PackTable& pack : table.packs()) {
    for (const KernelRecord& record : pack.pack().kernels) {
      if (!pack.is_left_out(record)) continue;
      for (const BarredKernel& bar : table.barred()) {
        if (bar.sha256 != record.sha256) continue;
        CtaGrid ignored;
        const Misfits misfits =
            pack.pack().family == KernelFamily::kCubistDecode
                ? find_decode_misfits(pack, request, record)
                : find_misfits(request, record.traits, pack.pack().revision, false, ignored);
        if (misfits.none()) found.push_back({&record, bar.reason});
        break;
      }
    }
  }
  return found;
}

Error with_barred(Error refusal, const std::vector<BarredNote>& barred) {
  if (barred.empty() || refusal.code() != StatusCode::kUnsupported) return refusal;
  const std::string more =
      barred.size() == 1 ? "" : fmt::format(" (and {} more that are barred)", barred.size() - 1);
  return Error(
      refusal.code(),
      fmt::format("kernel '{}' would serve, but is barred: {}{}; without it: {}",
                  barred.front().record->name, barred.front().reason, more, refusal.message()));
}

}  // namespace

Error with_barred(Error refusal, const KernelTable& table, const Request& request) {
  return with_barred(std::move(refusal), find_barred(table, request));
}

Result<Explanation> explain(const KernelTable& table, const AttentionProblem& problem,
                            const DeviceProfile& device, const SelectOptions& options) {
  Request request;
  CUBIST_RETURN_IF_ERROR(prepare_request(problem, device, request));
  Explanation out;
  out.request = describe_request(request);
  for (const PackTable& pack : table.packs()) {
    out.packs.push_back(explain_pack(pack, request, device, options, out));
    if (out.packs.back().chose) {
      find_runner_up(pack, request, out);
      break;
    }
  }
  out.barred = find_barred(table, request);
  if (out.selection) {
    out.refusal.reset();
  } else if (out.refusal) {
    out.refusal = with_barred(std::move(*out.refusal), out.barred);
  } else {
    auto selected = select(table, problem, device, options);
    if (!selected) out.refusal = std::move(selected.error());
  }
  return out;
}

}  // namespace cubist::selector
