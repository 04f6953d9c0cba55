#include "launcher/nvfp4_output.h"

#include <cmath>
#include <limits>

namespace cubist::launcher {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Result<Nvfp4ScaleLayout> nvfp4_scale_layout(const AttentionProblem& p) {
  if (p.dtype_o != Dtype::kE2m1) {
    return fail(StatusCode::kInvalidArgument,
                "dtype_o is {}; an nvfp4 output (e2m1) alone has block scales",
                to_string(p.dtype_o));
  }
  const std::int64_t elements = std::int64_t{p.num_q_heads} * p.head_dim_vo;
  if (elements < 1 || elements % kNvfp4BlockElements != 0) {
    return fail(StatusCode::kInvalidArgument,
                "num_q_heads * head_dim_vo is {}; an nvfp4 output needs a multiple of {}", elements,
                kNvfp4BlockElements);
  }
  const std::int64_t last_row = p.o_sf_start_index + p.sum_seq_q - 1;
  if (p.o_sf_start_index < 0 || p.sum_seq_q < 1 ||
      last_row > std::numeric_limits<std::int32_t>::max()) {
    return fail(StatusCode::kInvalidArgument,
                "o_sf_start_index is {} with {} tokens; rows of the scale tensor are 0 to 2^31 - 1",
                p.o_sf_start_index, p.sum_seq_q);
  }
  return Nvfp4ScaleLayout{round_up(last_row + 1, 128), round_up(elements / kNvfp4BlockElements, 4)};
}

Status check_nvfp4_output(const AttentionProblem& p, std::uint64_t o_sf) {
  if (p.dtype_o != Dtype::kE2m1) {
    if (o_sf == 0) return {};
    return fail(StatusCode::kInvalidArgument,
                "o_sf is given, but dtype_o is {}; block scales belong to an nvfp4 output (e2m1)",
                to_string(p.dtype_o));
  }
  CUBIST_ASSIGN_OR_RETURN(const Nvfp4ScaleLayout layout, nvfp4_scale_layout(p));
  if (o_sf == 0 || o_sf % 16 != 0) {
    return fail(StatusCode::kInvalidArgument,
                "o_sf is {:#x}; an nvfp4 output needs the address of {} x {} block scales, aligned "
                "to 16 bytes",
                o_sf, layout.rows, layout.columns);
  }
  if (std::isfinite(p.o_sf_scale) && p.o_sf_scale > 0.0F) return {};
  return fail(StatusCode::kInvalidArgument,
              "o_sf_scale is {}; the global scale of an nvfp4 output must be finite and above 0",
              p.o_sf_scale);
}

}  // namespace cubist::launcher
