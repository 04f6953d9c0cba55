#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "selector/cost_model.h"
#include "selector/geometry.h"
#include "selector/kernel_table.h"
#include "selector/rules.h"

namespace cubist::selector {

/// The passes that the trtllm-gen rule sets share. `Revision` supplies what differs:
///   static bool is_mla(const Request&)
///   static bool mla_takes_dense_mask / page_key_first / has_dynamic_page / has_wide_v /
///               window_skips_sparse                                        constants
///   static bool sparse_uses_two_ctas(const Request&)
///   static bool allows_cluster_reduction(const Request&, bool mla, const KernelTraits& wanted)
///
/// State lives in `wanted_` and persists from pass to pass unless a step overwrites it, exactly as
/// in the published code: several choices hang on it.
template <class Revision>
class TrtllmGenPasses {
 public:
  TrtllmGenPasses(const PackTable& table, const Request& request, const RuleOptions& options,
                  RuleTrace* trace)
      : table_(table),
        request_(request),
        options_(options),
        trace_(trace),
        group_(table.find_group(request.wanted)),
        mla_(Revision::is_mla(request)) {}

  RuleResult run() {
    RuleResult result;
    set_initial_state();
    settle(result.choice);
    if (result.choice.refusal == RuleRefusal::kNone &&
        result.choice.record->traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory) {
      result.has_sibling = true;
      without_clusters(result.sibling);
    }
    return result;
  }

 private:
  static constexpr int kMaxPasses = 4;

  struct State {
    KernelTraits wanted;
    bool force_global_memory = false;
  };

  void set_initial_state() {
    KernelTraits& wanted = state_.wanted;
    wanted = request_.wanted;
    wanted.head_dim_per_cta_v = wanted.head_dim_vo;
    wanted.tile_q = 128;
    wanted.tile_kv = 128;
    wanted.page_size = static_cast<std::uint16_t>(std::min(request_.page_size, 0xffff));
    if (request_.is_decode()) {
      wanted.kernel_type = KernelType::kGeneration;
      wanted.scheduler = TileScheduler::kStatic;
      wanted.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory;
      wanted.mask_type =
          mla_ && Revision::mla_takes_dense_mask ? MaskType::kDense : MaskType::kCausal;
    } else {
      wanted.kernel_type = KernelType::kContext;
      wanted.scheduler = TileScheduler::kPersistent;
      wanted.multi_ctas_kv_mode = MultiCtasKvMode::kOff;
      wanted.mask_type = request_.causal ? MaskType::kCausal : MaskType::kDense;
    }
  }

  /// Selects, looks up and lays out until nothing wants a change.
  void settle(RuleChoice& choice) {
    for (int pass = 1;; ++pass) {
      const Reselection again = one_pass(choice);
      if (choice.refusal != RuleRefusal::kNone || again == Reselection::kNone) return;
      if (pass == kMaxPasses) {
        choice.refusal = RuleRefusal::kNotConverged;
        return;
      }
    }
  }

  /// The published code's answer to too few active clusters: one more pass with the split kept in
  /// global memory, which must come to rest at once.
  void without_clusters(RuleChoice& choice) {
    state_.force_global_memory = true;
    state_.wanted.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory;
    if (is_as_before_clusters()) {
      choice.refusal = RuleRefusal::kNone;
      choice.record = before_clusters_;
      choice.grid = grid_before_clusters_;
      return;
    }
    if (one_pass(choice) != Reselection::kNone) choice.refusal = RuleRefusal::kNotConverged;
  }

  /// Whether that pass would find what the pass before the cluster one found: its pick repeats
  /// itself unless the cost model has a say, and its grid unless MLA wants fewer columns.
  bool is_as_before_clusters() const {
    return trace_ == nullptr && before_clusters_ != nullptr && !mla_ && request_.max_q_len == 1 &&
           !options_.cost_model_always &&
           before_clusters_->traits.mask_type == state_.wanted.mask_type;
  }

  Reselection one_pass(RuleChoice& choice) {
    begin_note();
    Reselection again = Reselection::kNone;
    choice.refusal = pick();
    if (choice.refusal == RuleRefusal::kNone) {
      choice.refusal = look_up(state_.wanted, choice.record);
    }
    if (choice.refusal != RuleRefusal::kNone) {
      choice.wanted = state_.wanted;
      end_note(choice, again);
      return again;
    }
    if (trace_ != nullptr) choice.wanted = state_.wanted;  // before laying out changes it
    choice.refusal = lay_out(state_, *choice.record, choice.grid, again);
    if (choice.refusal != RuleRefusal::kNone) choice.wanted = choice.record->traits;
    end_note(choice, again);
    if (again == Reselection::kClusterReduction) {
      before_clusters_ = choice.record;
      grid_before_clusters_ = choice.grid;
    }
    return again;
  }

  RuleRefusal pick() {
    if constexpr (Revision::page_key_first) pick_page();
    if (request_.is_decode()) {
      const RuleRefusal refusal = mla_ ? pick_mla() : pick_generation();
      if (refusal != RuleRefusal::kNone) return refusal;
    }
    if constexpr (Revision::has_wide_v) {
      // No kernel keeps 512 output columns in one CTA except the Swaps ones.
      if (state_.wanted.head_dim_vo > 256 && !mla_ &&
          state_.wanted.kernel_type != KernelType::kSwapsMmaAbGeneration) {
        state_.wanted.head_dim_per_cta_v = 256;
      }
    }
    pick_window();
    if constexpr (!Revision::page_key_first) pick_page();
    return RuleRefusal::kNone;
  }

  void pick_page() {
    KernelTraits& wanted = state_.wanted;
    wanted.dynamic_page = false;
    if (request_.sparse) {
      wanted.page_size = 1;
    } else if (!request_.is_paged()) {
      wanted.page_size = 0;
    } else if (Revision::has_dynamic_page && request_.heads_per_kv > 1 &&
               wanted.head_dim_qk == wanted.head_dim_vo && request_.page_size >= 128) {
      wanted.page_size = 128;
      wanted.dynamic_page = true;
    } else {
      // No kernel is built for a fixed page that the field cannot hold.
      wanted.page_size = static_cast<std::uint16_t>(std::min(request_.page_size, 0xffff));
    }
  }

  void pick_window() {
    if (Revision::window_skips_sparse && request_.sparse) return;
    if (!request_.is_decode() && state_.wanted.mask_type == MaskType::kDense) return;
    if (request_.window_bites() || request_.is_chunked()) {
      state_.wanted.mask_type = MaskType::kSlidingOrChunked;
    }
  }

  RuleRefusal pick_mla() {
    if (request_.sparse) {
      pick_sparse_mla();
    } else {
      pick_dense_mla();
    }
    if constexpr (Revision::mla_takes_dense_mask) {
      state_.wanted.mask_type = MaskType::kDense;
      if (!request_.sparse && (request_.window_bites() || request_.is_chunked())) {
        return RuleRefusal::kWindowedMla;
      }
    }
    return RuleRefusal::kNone;
  }

  /// Whether short KV sequences make the smaller tiles of the Swaps kernels the better choice for
  /// many heads: the split leaves at most 1,024 keys to a CTA, and one CTA per 16 heads still fits.
  bool kv_is_short() const {
    const std::int64_t ctas =
        std::int64_t{request_.batch} * request_.max_q_len * ceil_div(request_.heads_per_kv, 16);
    const std::int64_t room = std::max<std::int64_t>(1, request_.num_sms / ctas);
    const std::int64_t split = std::min(ceil_div(request_.max_kv_len, 256), room);
    return ceil_div(request_.max_kv_len, split) <= 1024 && ctas <= request_.num_sms;
  }

  void pick_dense_mla() {
    KernelTraits& wanted = state_.wanted;
    if (request_.heads_per_kv <= 32 || kv_is_short()) {
      wanted.kernel_type = KernelType::kSwapsMmaAbGeneration;
      wanted.tile_q = request_.heads_per_kv <= 8 ? 8 : 16;
      return;
    }
    keep_64_rows();
    if (request_.heads_per_kv == 128) use_two_ctas();
  }

  void pick_sparse_mla() {
    KernelTraits& wanted = state_.wanted;
    wanted.tile_kv = 128;
    if (request_.heads_per_kv > 32) {
      keep_64_rows();
      if (request_.heads_per_kv == 128 && Revision::sparse_uses_two_ctas(request_)) use_two_ctas();
      return;
    }
    wanted.kernel_type = KernelType::kSwapsMmaAbGeneration;
    wanted.tile_q = static_cast<std::uint16_t>(request_.heads_per_kv);
    const std::int64_t keys = std::min(request_.max_kv_len, request_.top_k);
    if (request_.heads_per_kv / 2 >= 8 &&
        request_.batch * ceil_div(keys, 128) <= request_.num_sms / 8) {
      wanted.tile_q = static_cast<std::uint16_t>(request_.heads_per_kv / 2);
    }
  }

  void keep_64_rows() {
    state_.wanted.kernel_type = KernelType::kKeepsMmaAbGeneration;
    state_.wanted.tile_q = 64;
    if (state_.wanted.multi_ctas_kv_mode != MultiCtasKvMode::kOff) {
      state_.wanted.multi_ctas_kv_mode = MultiCtasKvMode::kSeparateReduction;
    }
  }

  void use_two_ctas() {
    state_.wanted.two_cta_mma = true;
    state_.wanted.head_dim_per_cta_v = 256;
  }

  RuleRefusal pick_generation() {
    KernelTraits& wanted = state_.wanted;
    if (wanted.dtype_q != wanted.dtype_k || wanted.dtype_q != wanted.dtype_v) {
      wanted.kernel_type = KernelType::kSwapsMmaAbGeneration;
      wanted.tile_q = request_.heads_per_kv <= 8 ? 8 : 16;
      return RuleRefusal::kNone;
    }
    const std::int64_t rows = std::int64_t{request_.heads_per_kv} * request_.max_q_len;
    set_tile(wanted, rows <= 8 ? 8 : rows <= 16 ? 16 : rows <= 32 ? 32 : rows <= 64 ? 64 : 128);
    note_default_tile();
    if (request_.max_q_len > 1) return ask_cost_model();
    if (options_.cost_model_always) {
      // For one token the default is the only candidate, so the answer is known; a candidate that
      // is not in the pack refuses nothing that would be served without the switch.
      const KernelTraits kept = wanted;
      if (ask_cost_model() != RuleRefusal::kNone) wanted = kept;
    }
    return RuleRefusal::kNone;
  }

  static void set_tile(KernelTraits& wanted, std::int32_t tile_q) {
    wanted.tile_q = static_cast<std::uint16_t>(tile_q);
    wanted.kernel_type =
        tile_q >= 64 ? KernelType::kKeepsMmaAbGeneration : KernelType::kSwapsMmaAbGeneration;
  }

  /// Works on a copy of the state; what laying out one candidate changes there (split off, cluster
  /// reduction), the next ones inherit.
  RuleRefusal ask_cost_model() {
    note_cost_model();
    State copy = state_;
    const std::int32_t default_tile = copy.wanted.tile_q;
    CandidateNote note;
    if (const RuleRefusal refusal = model(copy, note); refusal != RuleRefusal::kNone)
      return refusal;
    if (2 * note.grid.total() > request_.num_sms || default_tile <= 8) return RuleRefusal::kNone;

    float best_time = std::numeric_limits<float>::infinity();
    std::int32_t best_tile = default_tile;
    for (std::int32_t tile = default_tile; tile >= 8 && tile >= request_.heads_per_kv; tile /= 2) {
      set_tile(copy.wanted, tile);
      if (const RuleRefusal refusal = model(copy, note); refusal != RuleRefusal::kNone) {
        return refusal;
      }
      note.time = modelled_time(request_.max_kv_len, request_.num_sms, tile,
                                note.record->traits.step_kv, note.grid);
      if (note.time < best_time) {
        best_time = note.time;
        best_tile = tile;
      }
      note_candidate(note);
    }
    set_tile(state_.wanted, best_tile);
    note_chosen(best_tile);
    return RuleRefusal::kNone;
  }

  RuleRefusal model(State& state, CandidateNote& note) {
    const RuleRefusal refusal = look_up(state.wanted, note.record);
    if (refusal != RuleRefusal::kNone) {
      state_.wanted = state.wanted;  // for the message: this is what was looked up last
      return refusal;
    }
    Reselection ignored = Reselection::kNone;
    return lay_out(state, *note.record, note.grid, ignored);
  }

  RuleRefusal look_up(const KernelTraits& wanted, const KernelRecord*& record) const {
    if (wanted.tile_q > 128 || (wanted.tile_q & (wanted.tile_q - 1)) != 0) {
      return RuleRefusal::kTileNotBuildable;
    }
    record = table_.find(group_, wanted, request_.sm);
    return record != nullptr ? RuleRefusal::kNone : RuleRefusal::kNoKernel;
  }

  /// One CTA per sequence of one MLA query: the case the published code calls minimum latency.
  bool is_min_latency() const {
    return request_.batch == 1 && request_.max_q_len <= 16 && state_.wanted.head_dim_qk == 576 &&
           state_.wanted.head_dim_vo == 512;
  }

  /// Computes the grid and changes `state` where the grid asks for another kernel.
  RuleRefusal lay_out(State& state, const KernelRecord& record, CtaGrid& grid,
                      Reselection& again) const {
    const KernelTraits& traits = record.traits;
    KernelTraits& wanted = state.wanted;
    switch (base_grid(request_, traits, mla_ && traits.two_cta_mma, grid)) {
      case GeometryFault::kNone:
        break;
      case GeometryFault::kHeadsPerCta:
        return RuleRefusal::kHeadsPerCta;
      case GeometryFault::kHeadDimPerCta:
        return RuleRefusal::kHeadDimPerCta;
      case GeometryFault::kTwoCtaShape:
        return RuleRefusal::kTwoCtaShape;
    }
    std::int32_t num_ctas_kv = 1;
    const bool splits = wanted.multi_ctas_kv_mode != MultiCtasKvMode::kOff;
    if (splits) num_ctas_kv = split_count(request_, traits, grid);
    apply_split(traits, num_ctas_kv, grid);
    if (splits) again = reconsider_split(state, grid);
    if (mla_ && !traits.two_cta_mma && again == Reselection::kNone &&
        wanted.head_dim_per_cta_v == 512) {
      const std::int64_t ctas = grid.total() * (is_min_latency() ? 1 : 2);
      if (ctas <= request_.num_sms) {
        wanted.head_dim_per_cta_v = ctas * 2 <= request_.num_sms ? 128 : 256;
        again = Reselection::kFewerColumnsPerCta;
      }
    }
    return RuleRefusal::kNone;
  }

  Reselection reconsider_split(State& state, const CtaGrid& grid) const {
    KernelTraits& wanted = state.wanted;
    Reselection again = Reselection::kNone;
    if (grid.num_ctas_kv <= 1) {
      wanted.multi_ctas_kv_mode = MultiCtasKvMode::kOff;
      wanted.scheduler = TileScheduler::kPersistent;
      return Reselection::kSplitOff;
    }
    if (options_.enable_tile_kv64 && grid.total() < request_.num_sms && mla_ && !request_.sparse &&
        wanted.tile_kv == 128) {
      wanted.tile_kv = 64;
      again = Reselection::kTileKv64;
    }
    if (!is_min_latency() && grid.num_ctas_kv <= 16 &&
        wanted.kernel_type == KernelType::kSwapsMmaAbGeneration &&
        wanted.multi_ctas_kv_mode == MultiCtasKvMode::kGlobalMemory && !state.force_global_memory &&
        Revision::allows_cluster_reduction(mla_, wanted)) {
      wanted.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory;
      again = Reselection::kClusterReduction;
    }
    return again;
  }

  // Notes for explain. Selection passes no trace, and each of these is one test of a null pointer.

  PassNote* note() const { return trace_ != nullptr ? &trace_->passes.back() : nullptr; }
  void begin_note() {
    if (trace_ == nullptr) return;
    trace_->passes.emplace_back();
    trace_->passes.back().forced_global_memory = state_.force_global_memory;
  }
  void note_default_tile() {
    if (PassNote* n = note()) n->default_tile_q = state_.wanted.tile_q;
  }
  void note_cost_model() {
    if (PassNote* n = note()) n->asked_cost_model = true;
  }
  void note_candidate(const CandidateNote& candidate) {
    PassNote* n = note();
    if (n == nullptr) return;
    n->candidates.push_back(candidate);
    n->candidates.back().waves = wave_count(candidate.grid, request_.num_sms);
  }
  void note_chosen(std::int32_t tile_q) {
    PassNote* n = note();
    if (n == nullptr) return;
    for (CandidateNote& candidate : n->candidates) {
      candidate.chosen = candidate.record->traits.tile_q == tile_q;
    }
  }
  void end_note(const RuleChoice& choice, Reselection again) {
    PassNote* n = note();
    if (n == nullptr) return;
    n->wanted = choice.wanted;
    n->record = choice.record;
    n->grid = choice.grid;
    n->reselection = again;
  }

  const PackTable& table_;
  const Request& request_;
  const RuleOptions& options_;
  RuleTrace* trace_;
  PackTable::GroupId group_;
  bool mla_;
  State state_;
  const KernelRecord* before_clusters_ = nullptr;  ///< of the last pass that asked for clusters
  CtaGrid grid_before_clusters_;
};

}  // namespace cubist::selector
