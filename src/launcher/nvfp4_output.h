#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/attention_problem.h"

namespace cubist::launcher {

// An nvfp4 output (dtype_o e2m1) is two tensors. O holds e2m1 elements, two to a byte, the even
// column in the low half. Each 16 columns of a row share a block scale, an e4m3 byte:
//
//   real O * o_scale = O * block scale / o_sf_scale
//   block scale      = e4m3(o_sf_scale * largest magnitude of the 16 / 6)
//
// so the global scale o_sf_scale is what brings block scales into the range of e4m3; callers
// commonly take 448 * 6 / (largest magnitude of the whole output).
//
// A row of scales is a token: num_q_heads * head_dim_vo / 16 of them, row r being token
// r - o_sf_start_index, counted from 0 in this call. Rows are padded to a multiple of 128 and
// columns to one of 4, and stored in tiles of 128 x 4 bytes, as block-scaled matrix multiplications
// read them:
//
//   byte of (row, column) = ((row / 128) * (padded columns / 4) + column / 4) * 512
//                         + (row % 32) * 16 + (row % 128) / 32 * 4 + column % 4
//
// Sources: cuBLAS documentation, "1D Block Scaling Factors Layout"; FlashInfer's public decode and
// prefill calls, whose output scale tensor has this shape and whose tests quantise in this way.

/// Elements that share one block scale.
inline constexpr std::int32_t kNvfp4BlockElements = 16;

struct Nvfp4ScaleLayout {
  std::int64_t rows = 0;     ///< padded; o_sf_start_index included
  std::int64_t columns = 0;  ///< padded

  std::int64_t size_bytes() const { return rows * columns; }
  /// Where the scale of (row, column) lies.
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    return (row / 128 * (columns / 4) + column / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 +
           column % 4;
  }
};

/// The scale tensor of this problem's output: the least that holds it.
///
/// problem  with derived fields filled in
/// errors   kInvalidArgument: the output is not nvfp4; num_q_heads * head_dim_vo is no multiple of
///          16; o_sf_start_index is below 0, or the last row does not fit an int32
Result<Nvfp4ScaleLayout> nvfp4_scale_layout(const AttentionProblem& problem);

/// Checks what an nvfp4 output needs beside its tensor.
///
/// o_sf    address of the scale tensor, aligned to 16 bytes
/// errors  as above; kInvalidArgument: o_sf is missing or misaligned, o_sf_scale is not finite and
///         above 0; or one of them is given for another output
Status check_nvfp4_output(const AttentionProblem& problem, std::uint64_t o_sf);

}  // namespace cubist::launcher
