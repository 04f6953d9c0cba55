#include "selector/nearest.h"

#include <algorithm>
#include <array>

#include "selector/rules_cubist_decode.h"

namespace cubist::selector {
namespace {

/// How hard a caller finds it to change the thing: page size and an optional wish are a setting,
/// types cost accuracy, head sizes are the model itself.
struct Weight {
  Misfit misfit;
  std::int32_t weight;
};
constexpr std::array<Weight, 20> kWeights = {{
    {Misfit::kSkipSoftmax, 1}, {Misfit::kPage, 2},           {Misfit::kSplit, 2},
    {Misfit::kReduction, 3},   {Misfit::kScheduler, 3},      {Misfit::kMask, 4},
    {Misfit::kTypes, 5},       {Misfit::kSageBlocks, 5},     {Misfit::kFp4Output, 5},
    {Misfit::kHeadGroups, 6},  {Misfit::kTwoCta, 6},         {Misfit::kGridLimits, 6},
    {Misfit::kSparse, 8},      {Misfit::kLayout, 10},        {Misfit::kPhase, 10},
    {Misfit::kSmem, 10},       {Misfit::kHeadDims, 12},      {Misfit::kBoxRow, 12},
    {Misfit::kArch, 12},       {Misfit::kBatchInvariant, 4},
}};

std::int32_t count_type_differences(const KernelTraits& want, const KernelTraits& have) {
  return (want.dtype_q != have.dtype_q ? 1 : 0) + (want.dtype_k != have.dtype_k ? 1 : 0) +
         (want.dtype_v != have.dtype_v ? 1 : 0) + (writes(have, want.dtype_o) ? 0 : 1);
}

std::int32_t distance_of(Misfits misfits, const Request& request, const KernelTraits& traits) {
  std::int32_t distance = 0;
  for (const Weight& entry : kWeights) {
    if (misfits.has(entry.misfit)) distance += entry.weight;
  }
  if (misfits.has(Misfit::kTypes)) distance += count_type_differences(request.wanted, traits);
  return distance;
}

Misfits misfits_of(const PackTable& table, const Request& request, const KernelRecord& record) {
  if (table.pack().family == KernelFamily::kCubistDecode) {
    return find_decode_misfits(table, request, record);
  }
  CtaGrid ignored;
  return find_misfits(request, record.traits, table.pack().revision, true, ignored);
}

class DifferenceList {
 public:
  DifferenceList(const Request& request, const KernelTraits& traits, Misfits misfits)
      : request_(request), traits_(traits), misfits_(misfits) {}

  std::vector<Difference> take() {
    types();
    shapes();
    pages_and_masks();
    launch();
    return std::move(list_);
  }

 private:
  void add(Misfit misfit, std::string field, std::string needed, std::string found,
           std::string advice) {
    list_.push_back(
        {misfit, std::move(field), std::move(needed), std::move(found), std::move(advice)});
  }

  void type(std::string field, Dtype needed, Dtype found) {
    if (needed == found) return;
    add(Misfit::kTypes, field, std::string(to_string(needed)), std::string(to_string(found)),
        fmt::format("{} {}", field, to_string(found)));
  }

  void types() {
    const KernelTraits& want = request_.wanted;
    if (misfits_.has(Misfit::kTypes)) {
      type("dtype_q", want.dtype_q, traits_.dtype_q);
      type("dtype_k", want.dtype_k, traits_.dtype_k);
      type("dtype_v", want.dtype_v, traits_.dtype_v);
      if (!writes(traits_, want.dtype_o)) type("dtype_o", want.dtype_o, traits_.dtype_o);
    }
    if (misfits_.has(Misfit::kSageBlocks)) {
      const auto text = [](const KernelTraits& t) {
        return fmt::format("{},{},{},{}", t.sage_block_q, t.sage_block_k, t.sage_block_p,
                           t.sage_block_v);
      };
      add(Misfit::kSageBlocks, "sage_blocks", text(want), text(traits_),
          "sage_blocks " + text(traits_));
    }
    if (misfits_.has(Misfit::kFp4Output)) {
      add(Misfit::kFp4Output, "dtype_o", "e2m1 in a ragged call", "needs a scale tensor",
          "another dtype_o, or a paged call");
    }
  }

  void shapes() {
    const KernelTraits& want = request_.wanted;
    if (misfits_.has(Misfit::kHeadDims)) {
      add(Misfit::kHeadDims, "head_dim_qk/head_dim_vo",
          fmt::format("{}/{}", want.head_dim_qk, want.head_dim_vo),
          fmt::format("{}/{}", traits_.head_dim_qk, traits_.head_dim_vo), "");
    }
    if (misfits_.has(Misfit::kBoxRow)) {
      add(Misfit::kBoxRow, "head_dim_qk/head_dim_vo", "rows of whole 32 bytes",
          fmt::format("{}/{} elements of {}", traits_.head_dim_qk, traits_.head_dim_vo,
                      to_string(traits_.dtype_k)),
          "");
    }
    if (misfits_.has(Misfit::kPhase) || misfits_.has(Misfit::kLayout)) {
      // No call has the published kernels' other layouts.
      const bool is_of_a_phase =
          traits_.qkv_layout == QkvLayout::kSeparate || traits_.qkv_layout == QkvLayout::kPagedKv;
      add(Misfit::kPhase, "phase", std::string(to_string(request_.phase)),
          fmt::format("{} kernel, {} layout", to_string(traits_.kernel_type),
                      to_string(traits_.qkv_layout)),
          is_of_a_phase ? "another phase of call" : "");
    }
    if (misfits_.has(Misfit::kSparse)) {
      add(Misfit::kSparse, "sparse_mla_topk", std::string(to_string(want.sparse_type)),
          std::string(to_string(traits_.sparse_type)),
          traits_.sparse_type == SparseType::kNone ? "no sparse_mla_topk" : "a sparse_mla_topk");
    }
    if (misfits_.has(Misfit::kHeadGroups)) {
      add(Misfit::kHeadGroups, "num_q_heads / num_kv_heads",
          fmt::format("{} heads per KV head", request_.heads_per_kv),
          fmt::format("{} rows per CTA", traits_.step_q),
          fmt::format("heads per KV head of at most {}{}", traits_.step_q,
                      traits_.groups_tokens_heads_q ? "" : ", or a multiple of it"));
    }
    if (misfits_.has(Misfit::kTwoCta)) {
      add(Misfit::kTwoCta, "two_cta_mma",
          fmt::format("{} query heads on {} KV heads", request_.num_q_heads, request_.num_kv_heads),
          "128 query heads on one KV head", "");
    }
  }

  std::string page_text() const {
    if (traits_.page_size == 1) return "token indices (sparse)";
    if (!traits_.dynamic_page) return std::to_string(traits_.page_size);
    return traits_.page_size == 0 ? "any power of two up to 128" : "any power of two from 128";
  }

  void pages_and_masks() {
    if (misfits_.has(Misfit::kPage)) {
      add(Misfit::kPage, "page_size", std::to_string(request_.page_size), page_text(),
          traits_.page_size == 1 ? "" : "page_size " + page_text());
    }
    if (misfits_.has(Misfit::kMask)) {
      const char* needed = request_.is_chunked()     ? "chunked"
                           : request_.window_bites() ? "a window shorter than the KV"
                           : request_.causal         ? "causal"
                                                     : "dense";
      const char* advice = "causal true";
      if (traits_.mask_type == MaskType::kSlidingOrChunked) {
        advice = "a window_left shorter than the KV";
      } else if (request_.window_bites() || request_.is_chunked()) {
        advice = "no window and no chunks";
      } else if (traits_.mask_type == MaskType::kDense) {
        advice = request_.is_decode() ? "max_q_len 1" : "causal false";
      }
      add(Misfit::kMask, "mask_type", needed, std::string(to_string(traits_.mask_type)), advice);
    }
    if (misfits_.has(Misfit::kSkipSoftmax)) {
      add(Misfit::kSkipSoftmax, "skip_softmax", request_.skip_softmax ? "on" : "off",
          traits_.skip_softmax ? "on" : "off",
          traits_.skip_softmax ? "a skip_softmax threshold" : "no skip_softmax");
    }
  }

  void launch() {
    if (misfits_.has(Misfit::kArch)) {
      add(Misfit::kArch, "sm", std::to_string(request_.sm), to_string(traits_.arch), "");
    }
    if (misfits_.has(Misfit::kSmem)) {
      add(Misfit::kSmem, "smem", fmt::format("at most {} bytes", request_.max_smem),
          std::to_string(traits_.smem), "");
    }
    if (misfits_.has(Misfit::kSplit)) {
      add(Misfit::kSplit, "num_ctas_kv", "a KV sequence short, or CTAs many enough to be not split",
          fmt::format("needs at least 2 CTAs of {} keys each", 2 * traits_.step_kv),
          fmt::format("a max_kv_len above {}, or fewer sequences", 2 * traits_.step_kv));
    }
    if (misfits_.has(Misfit::kReduction) || misfits_.has(Misfit::kScheduler)) {
      add(Misfit::kReduction, "multi_ctas_kv_mode", "one CTA per KV sequence, or a known reduction",
          std::string(to_string(traits_.multi_ctas_kv_mode)), "");
    }
    if (misfits_.has(Misfit::kBatchInvariant)) {
      add(Misfit::kBatchInvariant, "batch_invariant", "true",
          fmt::format("a {} scheduler", to_string(traits_.scheduler)), "batch_invariant false");
    }
    if (misfits_.has(Misfit::kGridLimits)) {
      add(Misfit::kGridLimits, "grid", "at most 65,535 in y and z, 2^31 - 1 in all", "more",
          "a smaller batch or max_q_len");
    }
  }

  const Request& request_;
  const KernelTraits& traits_;
  Misfits misfits_;
  std::vector<Difference> list_;
};

/// Differences as one text: kernels that differ in the same way show once.
std::string signature(const std::vector<Difference>& differences) {
  std::string text;
  for (const Difference& d : differences) text += d.field + '=' + d.found + ';';
  return text;
}

}  // namespace

std::vector<NearKernel> find_nearest_kernels(const PackTable& table, const Request& request,
                                             std::size_t count) {
  struct Scored {
    std::int32_t distance;
    const KernelRecord* record;
  };
  std::vector<Scored> scored;
  scored.reserve(table.pack().kernels.size());
  for (const KernelRecord& record : table.pack().kernels) {
    if (table.is_left_out(record)) continue;
    const Misfits misfits = misfits_of(table, request, record);
    scored.push_back({distance_of(misfits, request, record.traits), &record});
  }
  std::sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    if (a.distance != b.distance) return a.distance < b.distance;
    return is_preferred(*a.record, *b.record);
  });
  std::vector<NearKernel> nearest;
  std::vector<std::string> shown;
  for (const Scored& entry : scored) {
    if (nearest.size() == count) break;
    const KernelTraits& traits = entry.record->traits;
    NearKernel near{
        entry.record,
        DifferenceList(request, traits, misfits_of(table, request, *entry.record)).take(),
        entry.distance};
    std::string text = signature(near.differences);
    if (std::find(shown.begin(), shown.end(), text) != shown.end()) continue;
    shown.push_back(std::move(text));
    nearest.push_back(std::move(near));
  }
  return nearest;
}

}  // namespace cubist::selector
