#pragma once

#include <cstdint>
#include <limits>

#include "base/result.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "model/kernel_record.h"

namespace cubist::selector {

/// "No window" and "no chunks", as the rules compare with them.
inline constexpr std::int32_t kUnlimited = std::numeric_limits<std::int32_t>::max();

/// An attention problem with every derived field worked out and every field checked: what rules,
/// geometry, `serves` and plans read. Lengths in tokens.
struct Request {
  /// What a kernel must have, as far as the problem alone says it: types, SageAttention blocks,
  /// head sizes, layout, sparse type, skip softmax. The rules fill in the rest.
  KernelTraits wanted;

  Phase phase = Phase::kDecode;
  bool sparse = false;  ///< decode with a top-k
  bool is_mla = false;  ///< the values are the beginnings of the keys
  bool causal = true;
  bool lse = false;
  bool pdl = true;
  bool skip_softmax = false;
  bool varlen_q = false;
  bool batch_invariant = false;

  std::int32_t num_q_heads = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t heads_per_kv = 0;  ///< num_q_heads / num_kv_heads ("hpk")
  std::int32_t batch = 0;
  std::int32_t max_q_len = 0;
  std::int32_t max_kv_len = 0;  ///< dynamic sparse: the top-k
  std::int64_t sum_seq_q = 0;
  std::int32_t top_k = 0;
  std::int32_t window = kUnlimited;   ///< keys a query sees, itself included
  std::int32_t chunk = kUnlimited;    ///< tokens of one attention chunk
  std::int32_t page_size = 0;         ///< 0: not paged
  std::int64_t q_stride_tokens = 0;   ///< elements
  std::int64_t kv_stride_tokens = 0;  ///< elements; paged
  std::int64_t workspace_size = 0;    ///< bytes

  std::uint32_t sm = 0;
  std::int32_t num_sms = 0;
  std::uint32_t max_smem = 0;
  std::int32_t max_active_clusters = -1;  ///< the problem's own answer; -1: ask elsewhere

  bool is_decode() const { return phase == Phase::kDecode; }
  bool is_paged() const { return phase != Phase::kRagged; }
  /// Whether some query sees fewer keys than there are.
  bool window_bites() const { return max_kv_len > window; }
  bool is_chunked() const { return chunk != kUnlimited; }
};

/// Checks every field of `problem` and `device` and works out the derived ones. What holds for
/// every kernel family; checks of one published release are its rules' own.
///
/// Errors: kInvalidArgument for a field that is out of range or contradicts another, kUnsupported
/// for a feature that no kernel is asked for (custom masks, packed QKV); the message names field,
/// value and rule.
Status prepare_request(const AttentionProblem& problem, const DeviceProfile& device, Request& out);

}  // namespace cubist::selector
