#include "selector/entry_checks.h"

#include <string_view>

namespace cubist::selector {
namespace {

tl::unexpected<Error> wrong_type(std::string_view field, Dtype found, std::string_view accepted) {
  return fail(StatusCode::kUnsupported, "{} is {}; the trtllm-gen kernels take {}", field,
              to_string(found), accepted);
}

bool is_16_bit_float(Dtype dtype) { return dtype == Dtype::kFp16 || dtype == Dtype::kBf16; }

}  // namespace

Status check_types(const Request& request, bool int8_q, bool checks_v) {
  const KernelTraits& w = request.wanted;
  const auto is_kv_type = [](Dtype dtype) {
    return is_16_bit_float(dtype) || dtype == Dtype::kE4m3 || dtype == Dtype::kE2m1;
  };
  const bool int8 = int8_q && w.dtype_q == Dtype::kInt8;
  if (!is_16_bit_float(w.dtype_q) && w.dtype_q != Dtype::kE4m3 && !int8) {
    return wrong_type("dtype_q", w.dtype_q, int8_q ? "bf16, fp16, e4m3, int8" : "bf16, fp16, e4m3");
  }
  if (!is_kv_type(w.dtype_k) && !(int8_q && w.dtype_k == Dtype::kInt8)) {
    return wrong_type("dtype_k", w.dtype_k,
                      int8_q ? "bf16, fp16, e4m3, e2m1, int8" : "bf16, fp16, e4m3, e2m1");
  }
  if (checks_v && !is_kv_type(w.dtype_v)) {
    return wrong_type("dtype_v", w.dtype_v, "bf16, fp16, e4m3, e2m1");
  }
  if (!is_kv_type(w.dtype_o)) return wrong_type("dtype_o", w.dtype_o, "bf16, fp16, e4m3, e2m1");
  return {};
}

Status check_decode_head_dims(const Request& request) {
  const KernelTraits& w = request.wanted;
  if (w.head_dim_qk == w.head_dim_vo || has_head_dims(request, 576, 512) ||
      has_head_dims(request, 320, 256)) {
    return {};
  }
  return fail(
      StatusCode::kUnsupported,
      "head_dim_qk is {} and head_dim_vo is {}; decode takes equal sizes, 576/512 or 320/256",
      w.head_dim_qk, w.head_dim_vo);
}

Status check_workspace(const Request& request, const WorkspacePieces& pieces) {
  const auto aligned = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
  if (request.workspace_size >= pieces.counters &&
      request.workspace_size >= aligned(pieces.counters) + pieces.softmax_stats) {
    return {};
  }
  return fail(StatusCode::kInvalidArgument,
              "workspace_size is {} bytes; this call needs {} for counters and {} for softmax "
              "statistics, besides the partial results",
              request.workspace_size, pieces.counters, pieces.softmax_stats);
}

}  // namespace cubist::selector
