#pragma once

#include <cstdint>

#include "model/decode_params.h"

namespace cubist_decode {

/// What one CTA is to do. Tokens count within the sequence's new tokens, keys within its KV.
struct Work {
  int num_tokens;  ///< new tokens of this CTA
  int first_token;
  int num_heads;           ///< query heads of this CTA, all of one KV head's group
  int first_head;          ///< among all query heads
  unsigned rows_to_token;  ///< ceil(2^16 / rows of one token), see row_of
  int rows_per_token;
  std::int64_t q_row;  ///< row of the sequence's first new token in q, o and lse
  int first_position;  ///< position of this CTA's first token among the keys; may be < 0
  int window_left;     ///< tokens; a huge number where there is no window
  int key_begin;       ///< keys any row may see: [key_begin, key_end)
  int key_end;
  int tile_begin;  ///< 64-key tiles of this CTA: [tile_begin, tile_end)
  int tile_end;
  int split;          ///< this CTA's turn among the CTAs of its rows
  int num_splits;     ///< CTAs that share these rows' keys
  std::int64_t tile;  ///< number of these rows among all of the launch: counters and partials
};

/// Which token and head a row of the CTA is; the spare rows of a tile are not valid.
struct Row {
  int token;  ///< within the CTA; of a spare row: some token of it
  int head;   ///< among all query heads
  bool valid;
};

__device__ __forceinline__ Row row_of(const Work& work, int row) {
  // row / rows_per_token, exact for the at most 128 rows of a tile: the product is too large by
  // less than row / 2^16 tokens, and the quotient's fraction never comes that close to the next
  // integer.
  const int token = static_cast<int>(static_cast<unsigned>(row) * work.rows_to_token >> 16);
  const int head = row - token * work.rows_per_token;
  return {min(token, work.num_tokens - 1), work.first_head + head,
          token < work.num_tokens && head < work.num_heads};
}

/// Keys a token of the CTA sees: [first_key, end_key). Negative or crossed where it sees none.
__device__ __forceinline__ int end_key(const Work& work, int token) {
  return work.first_position + token + 1;
}
__device__ __forceinline__ int first_key(const Work& work, int token) {
  return work.first_position + token - work.window_left;
}

inline constexpr int kNoWindow = 1 << 30;

/// Tiles of `tile_kv` keys that hold a key of [key_begin, key_end).
__device__ __forceinline__ int num_tiles_of(const Work& work, int tile_kv) {
  return work.key_begin == work.key_end
             ? 0
             : (work.key_end + tile_kv - 1) / tile_kv - work.key_begin / tile_kv;
}

/// Rows of one query CTA and one block of heads of a sequence, and the keys they may see:
/// everything but the tiles and the split. False: it has no such tokens.
__device__ __forceinline__ bool describe_rows(const CubistDecodeParams& params, int batch,
                                              int q_cta, int head_block, Work& work) {
  int q_len = params.max_q_len;
  work.q_row = static_cast<std::int64_t>(batch) * params.max_q_len;
  if (params.cum_seq_lens_q != nullptr) {
    work.q_row = params.cum_seq_lens_q[batch];
    q_len = params.cum_seq_lens_q[batch + 1] - params.cum_seq_lens_q[batch];
  }
  work.first_token = q_cta * params.num_tokens_per_cta_q;
  work.num_tokens = min(params.num_tokens_per_cta_q, q_len - work.first_token);
  if (work.num_tokens <= 0) return false;

  work.rows_per_token = params.num_heads_per_cta;
  const auto rows_per_token = static_cast<unsigned>(params.num_heads_per_cta);
  work.rows_to_token = (65535U + rows_per_token) / rows_per_token;
  const int head_tiles =
      (params.num_heads_per_kv + params.num_heads_per_cta - 1) / params.num_heads_per_cta;
  const int kv_head = head_block / head_tiles;
  const int head_in_group = (head_block - kv_head * head_tiles) * params.num_heads_per_cta;
  work.num_heads = min(params.num_heads_per_cta, params.num_heads_per_kv - head_in_group);
  work.first_head = kv_head * params.num_heads_per_kv + head_in_group;

  const int kv_len = max(params.seq_lens_kv[batch], 0);
  work.first_position = kv_len - q_len + work.first_token;
  work.window_left = params.window_left < 0 ? kNoWindow : min(params.window_left, kNoWindow);
  work.key_end = max(end_key(work, work.num_tokens - 1), 0);
  work.key_begin = min(max(first_key(work, 0), 0), work.key_end);
  return true;
}

/// Rows and keys of this CTA. False: nothing to do, and no other CTA waits for it.
///
/// grid  x = num_ctas_q * num_ctas_kv, the former fastest, so that CTAs with the same keys are
///       neighbours; y = num_kv_heads * head tiles, the latter fastest; z = batch
__device__ __forceinline__ bool find_work(const CubistDecodeParams& params, int tile_kv,
                                          Work& work) {
  const int batch = static_cast<int>(blockIdx.z);
  const int q_cta = static_cast<int>(blockIdx.x) % params.num_ctas_q;
  work.split = static_cast<int>(blockIdx.x) / params.num_ctas_q;
  if (!describe_rows(params, batch, q_cta, static_cast<int>(blockIdx.y), work)) return false;

  const int first_tile = work.key_begin / tile_kv;
  const int num_tiles = num_tiles_of(work, tile_kv);
  const int per_cta = params.fixed.min_tiles_per_cta;
  work.num_splits = max(min(params.num_ctas_kv, (num_tiles + per_cta - 1) / per_cta), 1);
  if (work.split >= work.num_splits) return false;
  // At most 2^25 tiles times 64 CTAs: no overflow.
  const auto split = static_cast<unsigned>(work.split);
  const auto splits = static_cast<unsigned>(work.num_splits);
  const auto tiles = static_cast<unsigned>(num_tiles);
  work.tile_begin = first_tile + static_cast<int>(tiles * split / splits);
  work.tile_end = first_tile + static_cast<int>(tiles * (split + 1) / splits);
  work.tile =
      (static_cast<std::int64_t>(batch) * gridDim.y + blockIdx.y) * params.num_ctas_q + q_cta;
  return true;
}

}  // namespace cubist_decode
