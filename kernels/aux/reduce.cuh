#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "convert.cuh"
#include "model/aux_params.h"
#include "place.cuh"

/// The separate reduction over KV CTAs. src/model/aux_params.h draws the layout of the partial
/// results; README.md says what is computed.
namespace cubist_aux {

/// Threads of a CTA; each has eight columns of one row, together a slice of 4,096 elements.
inline constexpr int kReduceThreads = 512;
inline constexpr int kColumns = 8;
/// Partial results whose loads are in flight at once.
inline constexpr int kInFlight = 4;
/// Keys that a main CTA takes at once: the least that any of them holds.
inline constexpr int kTileKv = 128;

/// What one CTA has to do with its tile.
struct Tile {
  std::int64_t first_entry;  ///< of the tile, in blocks of tile_q rows
  std::int64_t first_token;  ///< row of O of the tile's first token
  int num_rows;
  int num_entries;  ///< KV CTAs that had keys for this tile; the others' entries may hold anything
  int first_head;
  int first_column;
};

/// Eight 16-bit elements, loaded at once.
struct alignas(16) Eight {
  std::uint32_t pairs[4];
};

/// A row's sums so far; every 2^x summed is relative to `maximum`.
struct Sums {
  float maximum = -FLT_MAX;  ///< raw score, before the softmax scale
  float sum = 0.0F;
  float o[kColumns] = {};
};

CUBIST_AUX_FN int entries_of_keys(int num_keys, int num_ctas_kv) {
  if (num_keys <= 0) return 0;
  const int num_tiles = (num_keys - 1) / kTileKv + 1;
  return num_tiles < num_ctas_kv ? num_tiles : num_ctas_kv;
}

/// False: the tile has no tokens.
CUBIST_AUX_FN bool find_tile(const CubistReduceParams& p, const Place& place, Tile& tile) {
  const int batch = static_cast<int>(place.block_z);
  const int q_cta = static_cast<int>(place.block_x) % p.num_ctas_q;
  int q_len = p.max_q_len;
  std::int64_t sequence = static_cast<std::int64_t>(batch) * p.max_q_len;
  if (p.cum_seq_lens_q != nullptr) {
    sequence = p.cum_seq_lens_q[batch];
    q_len = p.cum_seq_lens_q[batch + 1] - p.cum_seq_lens_q[batch];
  }
  const int first_token = q_cta * p.num_tokens_per_cta_q;
  int num_tokens = q_len - first_token;
  if (num_tokens > p.num_tokens_per_cta_q) num_tokens = p.num_tokens_per_cta_q;
  if (num_tokens <= 0) return false;

  tile.first_token = sequence + first_token;
  tile.num_rows = num_tokens * p.num_heads_per_cta;
  const int head_cta = static_cast<int>(place.block_y) / p.num_head_dim_ctas;
  const int column_cta = static_cast<int>(place.block_y) % p.num_head_dim_ctas;
  tile.first_head = head_cta * p.num_heads_per_cta;
  tile.first_column = column_cta * p.head_dim_per_cta;

  // The tile's last token sees the most keys: all but those of the tokens behind it.
  int num_keys = 0;
  if (p.topk_lens != nullptr) {
    num_keys = p.topk_lens[tile.first_token];
  } else {
    num_keys = p.seq_lens_kv[batch] - (q_len - first_token - num_tokens);
    if (p.sparse_topk > 0 && num_keys > p.sparse_topk) num_keys = p.sparse_topk;
  }
  tile.num_entries = entries_of_keys(num_keys, p.num_ctas_kv);
  const std::int64_t index =
      (static_cast<std::int64_t>(batch) * place.grid_y + place.block_y) * p.num_ctas_q + q_cta;
  tile.first_entry = index * p.num_ctas_kv;
  return true;
}

/// 2^(maximum - reference), 0 where nothing was summed: -inf - -inf would be NaN.
CUBIST_AUX_FN float weight_of(float maximum, float reference) {
  return maximum == -INFINITY ? 0.0F : exp2f(maximum - reference);
}

/// An entry whose sum is 0 had no keys for the row and counts for nothing, whatever else it holds.
template <Element kPartial>
CUBIST_AUX_FN void add_entries(Sums& sums, const Stats (&stats)[kInFlight],
                               const Eight (&values)[kInFlight], float scale) {
  float maximum = sums.maximum;
  CUBIST_AUX_UNROLL
  for (int i = 0; i < kInFlight; ++i) {
    if (stats[i].sum != 0.0F) maximum = fmaxf(maximum, stats[i].maximum);
  }
  const float kept = exp2f(scale * (sums.maximum - maximum));
  sums.maximum = maximum;
  sums.sum *= kept;
  CUBIST_AUX_UNROLL
  for (float& o : sums.o) o *= kept;
  CUBIST_AUX_UNROLL
  for (int i = 0; i < kInFlight; ++i) {
    if (stats[i].sum == 0.0F) continue;
    const float weight = exp2f(scale * (stats[i].maximum - maximum));
    sums.sum += stats[i].sum * weight;
    CUBIST_AUX_UNROLL
    for (int pair = 0; pair < kColumns / 2; ++pair) {
      float low = 0.0F;
      float high = 0.0F;
      unpack<kPartial>(values[i].pairs[pair], low, high);
      sums.o[2 * pair] += low * weight;
      sums.o[2 * pair + 1] += high * weight;
    }
  }
}

/// Joins what the KV CTAs found for eight columns of one row.
template <Element kPartial>
CUBIST_AUX_FN Sums sum_entries(const CubistReduceParams& p, const Tile& tile, int row, int column,
                               float scale) {
  const std::int64_t first_row = tile.first_entry * p.tile_q + row;
  const auto* stats = reinterpret_cast<const Stats*>(p.partial_stats) + first_row;
  const auto* values = reinterpret_cast<const Eight*>(
      static_cast<const std::uint16_t*>(p.partial_o) + first_row * p.head_dim_per_cta + column);
  const std::int64_t values_per_entry =
      static_cast<std::int64_t>(p.tile_q) * p.head_dim_per_cta / kColumns;
  Sums sums;
  for (int first = 0; first < tile.num_entries; first += kInFlight) {
    Stats some_stats[kInFlight];
    Eight some_values[kInFlight];
    CUBIST_AUX_UNROLL
    for (int i = 0; i < kInFlight; ++i) {
      const int entry = first + i;
      some_stats[i] = {-FLT_MAX, 0.0F};
      some_values[i] = {};
      if (entry < tile.num_entries) {
        some_stats[i] = stats[static_cast<std::int64_t>(entry) * p.tile_q];
        some_values[i] = values[entry * values_per_entry];
      }
    }
    add_entries<kPartial>(sums, some_stats, some_values, scale);
  }
  return sums;
}

template <Element kO>
CUBIST_AUX_FN void store_row(void* o, std::int64_t element, const float (&values)[kColumns],
                             float factor) {
  std::uint32_t pairs[kColumns / 2];
  CUBIST_AUX_UNROLL
  for (int pair = 0; pair < kColumns / 2; ++pair) {
    pairs[pair] = pack<kO>(values[2 * pair] * factor, values[2 * pair + 1] * factor);
  }
  if constexpr (kO == Element::kE4m3) {
    struct alignas(8) EightBytes {
      std::uint32_t quads[2];
    };
    *reinterpret_cast<EightBytes*>(static_cast<std::uint8_t*>(o) + element) = {
        {pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16}};
  } else {
    *reinterpret_cast<Eight*>(static_cast<std::uint16_t*>(o) +
                              element) = {{pairs[0], pairs[1], pairs[2], pairs[3]}};
  }
}

/// Adds the head's sink, normalises and writes O and, with column 0, the softmax statistics.
template <Element kO>
CUBIST_AUX_FN void write_row(const CubistReduceParams& p, const Tile& tile, int row, int column,
                             float scale, const Sums& sums) {
  const std::int64_t token = tile.first_token + row / p.num_heads_per_cta;
  const int head = tile.first_head + row % p.num_heads_per_cta;
  // From here on maxima are scaled, in powers of two.
  const float keys_maximum = sums.sum == 0.0F ? -INFINITY : sums.maximum * scale;
  float maximum = keys_maximum;
  float sum = sums.sum;
  float factor = p.sum_scale;
  if (p.sinks != nullptr) {
    // A key without value. It may exceed all others, so it takes part in the maximum.
    const float sink = p.sinks[head] * kLog2E;
    maximum = fmaxf(maximum, sink);
    const float kept = weight_of(keys_maximum, maximum);
    sum = sum * kept + p.sum_scale * weight_of(sink, maximum);
    factor *= kept;
  }
  factor = sum == 0.0F ? 0.0F : factor / sum;
  const std::int64_t out_row = token * p.num_q_heads + head;
  store_row<kO>(p.o, out_row * p.head_dim_vo + tile.first_column + column, sums.o, factor);
  if (p.softmax_stats != nullptr && tile.first_column == 0 && column == 0) {
    reinterpret_cast<Stats*>(p.softmax_stats)[out_row] = {maximum * kLn2, sum / p.sum_scale};
  }
}

/// The work of one thread.
///
/// grid  x = num_ctas_q * ctas_per_tile, the former fastest; y = head CTAs * num_head_dim_ctas, the
///       latter fastest; z = batch
template <Element kO>
CUBIST_AUX_FN void reduce(const CubistReduceParams& p, const Place& place) {
  Tile tile;
  if (!find_tile(p, place, tile)) return;
  const float scale = p.bmm1_scale_log2 != nullptr ? *p.bmm1_scale_log2 : p.scale_softmax_log2;
  const int threads_per_row = p.head_dim_per_cta / kColumns;
  const int rows_per_slice = kReduceThreads / threads_per_row;
  const int row_in_slice = static_cast<int>(place.thread) / threads_per_row;
  const int column = static_cast<int>(place.thread) % threads_per_row * kColumns;

  const int num_slices = (tile.num_rows - 1) / rows_per_slice + 1;
  const int slices_per_worker = (num_slices - 1) / p.ctas_per_tile + 1;
  const int worker = static_cast<int>(place.block_x) / p.num_ctas_q;
  const int first_slice = worker * slices_per_worker;
  for (int i = 0; i < slices_per_worker; ++i) {
    const int row = (first_slice + i) * rows_per_slice + row_in_slice;
    if (row >= tile.num_rows) return;
    const Sums sums = sum_entries<kPartialOf<kO>>(p, tile, row, column, scale);
    write_row<kO>(p, tile, row, column, scale, sums);
  }
}

}  // namespace cubist_aux
