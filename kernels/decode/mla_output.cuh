#pragma once

#include <cstdint>

#include "convert.cuh"
#include "output.cuh"
#include "stream_attend.cuh"
#include "work.cuh"

/// How an MLA kernel's rows of O leave its registers: 16 bytes a thread, 64 a row. In the layout of
/// the sums a thread would have four bytes here and there, in halves of the sectors of memory.
namespace cubist_decode {

/// Of the quad's four words each, word i of thread t goes to thread i, as its word t.
__device__ __forceinline__ void transpose_quad(std::uint32_t (&words)[4]) {
  const int thread = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int bit = 1; bit <= 2; ++bit) {
    const bool upper = (thread & bit) != 0;
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int low = bit == 1 ? 2 * pair : pair;
      const std::uint32_t sent = upper ? words[low] : words[low + bit];
      const std::uint32_t got = __shfl_xor_sync(0xffffffffU, sent, bit);
      if (upper) {
        words[low] = got;
      } else {
        words[low + bit] = got;
      }
    }
  }
}

/// Writes columns [first_column, first_column + 8 kBlocks) of the thread's row g + 8 r of O, eight
/// at a time, from unnormalised sums, and, with the first of them, its LSE. All of the warp's
/// threads call.
template <class V, int kBlocks>
__device__ __forceinline__ void write_columns(const CubistDecodeParams& params, const Work& work,
                                              ConsumerRows rows, int r, Softmax softmax,
                                              const float (&values)[4 * kBlocks],
                                              float output_scale, int first_column) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int index = thread / 32 * 16 + thread % 32 / 4 + 8 * r;
  const Row row = row_of(work, index);
  const bool valid = index < rows.count && row.valid;
  const RowScale scale =
      scale_of_row(params, valid ? row.head : work.first_head, softmax, output_scale);
  const std::int64_t token = work.q_row + work.first_token + row.token;
  auto* o = reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(params.o) +
                                     token * params.o_stride_tokens +
                                     row.head * params.o_stride_heads + first_column) +
            thread % 4;
#pragma unroll
  for (int block = 0; block < kBlocks; block += 4) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = pack<V::kQ>(values[4 * (block + i) + 2 * r] * scale.factor,
                             values[4 * (block + i) + 2 * r + 1] * scale.factor);
    }
    transpose_quad(words);
    if (valid) o[block] = make_uint4(words[0], words[1], words[2], words[3]);
  }
  if (valid && params.lse != nullptr && first_column == 0 && thread % 4 == 0) {
    params.lse[token * params.num_q_heads + row.head] = lse_of(scale.softmax);
  }
}

}  // namespace cubist_decode
