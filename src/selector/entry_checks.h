#pragma once

#include "base/result.h"
#include "selector/request.h"

namespace cubist::selector {

/// Counters at the front of the workspace, bytes. Source: 8192 * 256 int32 in both releases.
inline constexpr std::int64_t kCounterBytes = std::int64_t{8192} * 256 * 4;

/// Whether (head_dim_qk, head_dim_vo) is this pair.
inline bool has_head_dims(const Request& request, int qk, int vo) {
  return request.wanted.head_dim_qk == qk && request.wanted.head_dim_vo == vo;
}

/// Types that some trtllm-gen kernel takes. `int8_q`: Q may be int8; `checks_v`: V's type is looked
/// at.
Status check_types(const Request& request, bool int8_q, bool checks_v);

/// Decode takes equal head sizes and the two MLA pairs.
Status check_decode_head_dims(const Request& request);

/// `pieces` in the order they are carved, each rounded up to 16 bytes.
struct WorkspacePieces {
  std::int64_t counters = 0;
  std::int64_t softmax_stats = 0;
};
Status check_workspace(const Request& request, const WorkspacePieces& pieces);

}  // namespace cubist::selector
