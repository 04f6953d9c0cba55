#include "selector/explain_steps.h"

#include "selector/cost_model.h"
#include "selector/occupancy.h"

namespace cubist::selector {
namespace {

std::string grid_text(const Request& request, const CtaGrid& grid) {
  return fmt::format(
      "{} CTAs over query tokens x {} over heads x {} over columns x {} sequences, KV split over "
      "{}: "
      "{} CTAs in clusters of {}, {} wave(s) of {} SMs",
      grid.num_ctas_q, grid.num_head_ctas, grid.num_head_dim_ctas, request.batch, grid.num_ctas_kv,
      grid.total(), grid.cluster_x, wave_count(grid, request.num_sms), request.num_sms);
}

std::string_view text_of(Reselection reason) {
  switch (reason) {
    case Reselection::kNone:
      return "";
    case Reselection::kSplitOff:
      return "one CTA per KV sequence is all there is room or work for: split off, persistent "
             "scheduler";
    case Reselection::kTileKv64:
      return "SMs are left over: tile_kv 64";
    case Reselection::kClusterReduction:
      return "2 to 16 CTAs per KV sequence of a Swaps kernel: reduce through cluster shared memory";
    case Reselection::kFewerColumnsPerCta:
      return "SMs are left over: fewer output columns per CTA";
  }
  return "";
}

std::string mask_text(const Request& request, const KernelTraits& wanted) {
  if (wanted.mask_type == MaskType::kSlidingOrChunked) {
    return request.is_chunked()
               ? fmt::format("sliding_or_chunked: chunks of {} tokens", request.chunk)
               : fmt::format("sliding_or_chunked: max_kv_len {} exceeds the window of {} keys",
                             request.max_kv_len, request.window);
  }
  return std::string(to_string(wanted.mask_type));
}

void describe_cost_model(const PassNote& pass, std::vector<ExplainStep>& steps) {
  if (!pass.asked_cost_model) return;
  if (pass.record == nullptr) {
    steps.push_back({"cost_model", "asked, and a tile_q it wants to weigh is not in the pack"});
  } else if (pass.candidates.empty()) {
    steps.push_back({"cost_model",
                     "asked, and stopped at the default: it fills more than half the "
                     "SMs or is the smallest tile"});
    return;
  }
  for (const CandidateNote& candidate : pass.candidates) {
    steps.push_back(
        {"cost_model",
         fmt::format("tile_q {:>3}: {} CTAs, KV split over {}, {} wave(s), modelled time {:.0f}{}",
                     candidate.record->traits.tile_q, candidate.grid.total(),
                     candidate.grid.num_ctas_kv, candidate.waves,
                     static_cast<double>(candidate.time), candidate.chosen ? "  <- chosen" : "")});
  }
}

}  // namespace

std::vector<ExplainStep> describe_request(const Request& request) {
  std::vector<ExplainStep> steps;
  steps.push_back(
      {"phase", fmt::format("{}{}: {} query heads on {} KV heads ({} per KV head), head "
                            "sizes {}/{}, types q {}, k {}, v {}, o {}",
                            to_string(request.phase), request.sparse ? ", sparse" : "",
                            request.num_q_heads, request.num_kv_heads, request.heads_per_kv,
                            request.wanted.head_dim_qk, request.wanted.head_dim_vo,
                            to_string(request.wanted.dtype_q), to_string(request.wanted.dtype_k),
                            to_string(request.wanted.dtype_v), to_string(request.wanted.dtype_o))});
  steps.push_back(
      {"lengths", fmt::format("{} sequence(s), up to {} query tokens, up to {} KV tokens",
                              request.batch, request.max_q_len, request.max_kv_len)});
  steps.push_back({"device", fmt::format("sm {}, {} SMs", request.sm, request.num_sms)});
  return steps;
}

void describe_pass(const Request& request, const PassNote& pass, std::size_t number,
                   std::vector<ExplainStep>& steps) {
  const KernelTraits& wanted = pass.wanted;
  steps.push_back({"pass", fmt::format("pass {}{}", number,
                                       pass.forced_global_memory
                                           ? ", for devices where too few clusters fit: split kept "
                                             "in global memory"
                                           : "")});
  steps.push_back({"mask", mask_text(request, wanted)});
  steps.push_back({"page", wanted.dynamic_page
                               ? fmt::format("size read at run time ({})", request.page_size)
                               : fmt::format("{}", wanted.page_size)});
  if (pass.default_tile_q != 0) {
    steps.push_back({"tile_q", fmt::format("{} heads x {} tokens = {} rows: default tile_q {}",
                                           request.heads_per_kv, request.max_q_len,
                                           std::int64_t{request.heads_per_kv} * request.max_q_len,
                                           pass.default_tile_q)});
  }
  describe_cost_model(pass, steps);
  steps.push_back(
      {"look_up",
       fmt::format("{} kernel, tile_q {}, tile_kv {}, {} columns per CTA, {} "
                   "scheduler, multi_ctas_kv_mode {}{}{}: {}",
                   to_string(wanted.kernel_type), wanted.tile_q, wanted.tile_kv,
                   wanted.head_dim_per_cta_v, to_string(wanted.scheduler),
                   to_string(wanted.multi_ctas_kv_mode), wanted.two_cta_mma ? ", 2-CTA MMA" : "",
                   wanted.skip_softmax ? ", skip softmax" : "",
                   pass.record != nullptr ? pass.record->name.view() : "not in the pack")});
  if (pass.record == nullptr) return;
  steps.push_back({"ctas", grid_text(request, pass.grid)});
  if (pass.reselection != Reselection::kNone) {
    steps.push_back({"mode", std::string(text_of(pass.reselection)) + "; another pass"});
  }
}

void describe_selection(const Request& request, const DeviceProfile& device,
                        const Selection& selection, std::vector<ExplainStep>& steps) {
  for (std::uint32_t i = 0; i < selection.num_plans; ++i) {
    const LaunchPlan& plan = selection.plans[i];
    if (plan.min_active_clusters == 0) continue;
    const std::int32_t active = active_clusters(request, device, OccupancyQuery{}, plan);
    steps.push_back(
        {"occupancy",
         fmt::format("{} clusters of {} must fit at once; {}", plan.min_active_clusters,
                     plan.cluster[0],
                     active < 0 ? std::string("the answer is not known here: ask the driver")
                                : fmt::format("{} do", active))});
  }
  const LaunchPlan& best = selection.best();
  steps.push_back({"choice", best.record->name});
  for (std::uint32_t i = 1; i < selection.num_plans; ++i) {
    steps.push_back({"alternative", selection.plans[i].record->name});
  }
}

}  // namespace cubist::selector
