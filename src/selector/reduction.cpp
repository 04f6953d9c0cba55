#include "selector/reduction.h"

#include <algorithm>
#include <bit>

namespace cubist::selector {
namespace {

constexpr std::uint32_t kReductionThreads = 512;
// One worker's slice of a tile's 2-byte partial results, bytes: 512 threads of 16.
constexpr std::int64_t kSliceBytes = 8192;

}  // namespace

std::int32_t reduction_columns(const KernelTraits& traits) {
  return traits.head_dim_per_cta_v * (traits.two_cta_mma ? 2 : 1);
}

bool reduction_supports(const KernelTraits& traits) {
  const std::int32_t columns = reduction_columns(traits);
  const bool columns_fit = columns == 64 || columns == 128 || columns == 256 || columns == 512;
  const bool tiles_fit = (traits.tile_q == 64 || traits.tile_q == 128) && traits.tile_kv == 128;
  const bool output_fits = traits.dtype_q == Dtype::kE4m3
                               ? traits.dtype_o == Dtype::kE4m3 || traits.dtype_o == Dtype::kFp16 ||
                                     traits.dtype_o == Dtype::kBf16
                               : traits.dtype_o == traits.dtype_q;
  return traits.kernel_type == KernelType::kKeepsMmaAbGeneration && tiles_fit && columns_fit &&
         output_fits;
}

void plan_reduction(const Request& request, const KernelTraits& traits, const CtaGrid& grid,
                    ReductionPlan& out) {
  out.needed = true;
  out.block = kReductionThreads;
  out.head_dim_per_cta = reduction_columns(traits);
  out.num_head_ctas =
      request.num_q_heads / std::min<std::int32_t>(request.heads_per_kv, traits.tile_q);
  out.num_head_dim_ctas = traits.head_dim_vo / out.head_dim_per_cta;
  const std::int64_t rows_of_grid = std::int64_t{out.num_head_ctas} * out.num_head_dim_ctas;
  const std::int64_t tiles = grid.num_ctas_q * rows_of_grid * request.batch;
  const std::int64_t slices = std::int64_t{out.head_dim_per_cta} * 2 * traits.tile_q / kSliceBytes;
  const std::int64_t room = 2 * std::int64_t{request.num_sms} / tiles;
  out.ctas_per_tile = static_cast<std::int32_t>(std::clamp<std::int64_t>(room, 1, slices));
  out.grid = {static_cast<std::uint32_t>(grid.num_ctas_q * out.ctas_per_tile),
              static_cast<std::uint32_t>(rows_of_grid), static_cast<std::uint32_t>(request.batch)};
}

void plan_lse(const Request& request, LsePlan& out) {
  const auto values = static_cast<std::uint64_t>(request.sum_seq_q * request.num_q_heads);
  const std::uint64_t block = std::min<std::uint64_t>(1024, std::bit_ceil(values));
  out.needed = true;
  out.block = static_cast<std::uint32_t>(block);
  out.grid = {static_cast<std::uint32_t>((values + block - 1) / block), 1, 1};
}

}  // namespace cubist::selector
