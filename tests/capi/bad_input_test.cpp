// Every field of problems, devices and launch arguments, with values that are wrong: NULL, zero,
// negative, huge, misaligned, contradictory. The error names the field; nothing is launched or
// written. That no field is left out is held against the structs' own bytes. The other structs that
// a caller fills: bad_structs_test.cpp.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "covered.h"
#include "rig.h"

namespace {

using Catch::Matchers::Contains;
using cubist::test::check_covered;
using cubist::test::CRig;
using cubist::test::Extent;

constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
const float kNan = std::nanf("");
const float kInf = INFINITY;

/// One wrong value: which bytes of the struct it is about, and words the message must have.
struct Bad {
  std::size_t offset = 0;
  std::size_t size = 0;
  std::string field;
  std::vector<std::string> phrases;
  std::function<void(CRig&)> set;
};

#define BAD(object, member, value, ...)                                               \
  Bad {                                                                               \
    offsetof(decltype(CRig::object), member), sizeof(decltype(CRig::object)::member), \
        #object "." #member " = " #value, {__VA_ARGS__},                              \
        [](CRig& rig) { rig.object.member = value; }                                  \
  }

/// A field whose every value is right by itself: it is wrong beside another.
#define BAD_WITH(object, member, setting, ...)                                        \
  Bad {                                                                               \
    offsetof(decltype(CRig::object), member), sizeof(decltype(CRig::object)::member), \
        #object "." #member ": " #setting, {__VA_ARGS__}, [](CRig& rig) { setting; }  \
  }

std::vector<Bad> bad_problems() {
  return {
      BAD(problem, phase, 3, "phase is 3", "0..2"),
      BAD(problem, phase, -1, "phase is -1"),
      BAD(problem, dtype_q, 8, "dtype_q is 8"),
      BAD(problem, dtype_q, CUBIST_DTYPE_INT32, "int32"),
      BAD(problem, dtype_k, -1, "dtype_k is -1"),
      BAD(problem, dtype_k, CUBIST_DTYPE_E4M3, "e4m3"),
      BAD(problem, dtype_v, 99, "dtype_v is 99"),
      BAD(problem, dtype_o, kMax32, "dtype_o is 2147483647"),
      BAD(problem, head_dim_qk, 0, "head_dim_qk"),
      BAD(problem, head_dim_qk, -64, "head_dim_qk"),
      BAD(problem, head_dim_qk, kMax32, "head_dim_qk", "2147483647"),
      BAD(problem, head_dim_vo, 0, "head_dim_vo"),
      BAD(problem, head_dim_vo, 32, "head_dim_vo"),
      BAD(problem, num_q_heads, 0, "num_q_heads"),
      BAD(problem, num_q_heads, -8, "num_q_heads", "-8"),
      BAD(problem, num_q_heads, 7, "num_q_heads", "7"),
      BAD(problem, num_q_heads, kMax32, "num_q_heads"),
      BAD(problem, num_kv_heads, 0, "num_kv_heads"),
      BAD(problem, num_kv_heads, -1, "num_kv_heads", "-1"),
      BAD(problem, num_kv_heads, 3, "num_kv_heads"),
      BAD(problem, batch, 0, "batch"),
      BAD(problem, batch, -2, "batch", "-2"),
      BAD(problem, batch, kMax32, "batch", "2147483647"),
      BAD(problem, max_q_len, 0, "max_q_len"),
      BAD(problem, max_q_len, -1, "max_q_len", "-1"),
      BAD(problem, max_kv_len, -1, "max_kv_len", "-1"),
      BAD(problem, max_kv_len, 0, "max_kv_len"),
      BAD(problem, page_size, 0, "page_size"),
      BAD(problem, page_size, -32, "page_size", "-32"),
      BAD(problem, page_size, 24, "page_size", "24"),
      BAD(problem, page_size, 1 << 30, "page_size", "1073741824"),
      BAD(problem, max_pages_per_seq, 0, "max_pages_per_seq"),
      BAD(problem, max_pages_per_seq, -2, "max_pages_per_seq", "-2"),
      BAD(problem, max_pages_per_seq, 3, "max_kv_len is 2048", "3 pages"),
      BAD(problem, kv_layout, 2, "kv_layout is 2"),
      BAD(problem, sum_seq_q, 0, "sum_seq_q"),
      BAD(problem, sum_seq_q, -7, "sum_seq_q", "-7"),
      BAD(problem, sum_seq_q, 5, "sum_seq_q", "5"),
      BAD(problem, sum_seq_q, 3, "sum_seq_q is 3", "max_q_len"),
      BAD(problem, sum_seq_kv, -2, "sum_seq_kv", "-2"),
      BAD(problem, num_pages, 0, "num_pages"),
      BAD(problem, num_pages, -5, "num_pages", "-5"),
      BAD(problem, num_pages, kMax64, "num_pages"),
      BAD(problem, q_stride_tokens, -2, "q_stride_tokens", "-2"),
      BAD(problem, q_stride_tokens, 513, "q_stride_tokens", "513"),
      BAD(problem, q_stride_tokens, kMax64 / 4 * 4 - 4, "q_stride_tokens"),
      BAD(problem, q_stride_heads, -64, "q_stride_heads", "-64"),
      BAD(problem, q_stride_heads, 65, "q_stride_heads", "65"),
      BAD(problem, q_stride_heads, int64_t{1} << 62, "q_stride_heads"),
      BAD(problem, kv_stride_batch, -3, "kv_stride_batch", "-3"),
      BAD(problem, kv_stride_batch, 4097, "kv_stride_batch", "4097"),
      BAD(problem, kv_stride_batch, int64_t{1} << 60, "kv_stride_batch"),
      BAD(problem, kv_stride_heads, 7, "kv_stride_heads", "7"),
      BAD(problem, kv_stride_heads, int64_t{1} << 62, "kv_stride_heads"),
      BAD(problem, kv_stride_tokens, 63, "kv_stride_tokens", "63"),
      BAD(problem, kv_stride_tokens, -64, "kv_stride_tokens", "-64"),
      BAD(problem, k_stride_tokens, -9, "k_stride_tokens", "-9"),
      BAD(problem, k_stride_heads, -9, "k_stride_heads", "-9"),
      BAD(problem, v_stride_tokens, -9, "v_stride_tokens", "-9"),
      BAD(problem, v_stride_heads, -9, "v_stride_heads", "-9"),
      BAD_WITH(problem, lse_stride_tokens,
               (rig.problem.lse = 1, rig.problem.lse_stride_tokens = -4), "lse_stride_tokens"),
      BAD_WITH(problem, lse_stride_heads, (rig.problem.lse = 1, rig.problem.lse_stride_heads = 3),
               "lse_stride_heads", "3"),
      BAD(problem, workspace_size, -1, "workspace_size", "-1"),
      BAD(problem, kv_combined, 2, "kv_combined is 2"),
      BAD(problem, is_mla, -1, "is_mla is -1"),
      BAD(problem, is_mla, 1, "is_mla"),
      BAD(problem, window_left, -2, "window_left", "-2"),
      BAD(problem, chunk_size, -1, "chunk_size", "-1"),
      BAD(problem, chunk_size, 64, "chunk_size"),
      BAD(problem, causal, 2, "causal is 2"),
      BAD(problem, causal, 0, "causal"),
      BAD(problem, custom_mask, 1, "custom_mask"),
      BAD(problem, custom_mask, 5, "custom_mask is 5"),
      BAD(problem, packed_qkv, 1, "packed_qkv"),
      BAD(problem, varlen_q, 3, "varlen_q is 3"),
      BAD(problem, varlen_q, 1, "cum_seq_lens_q is NULL", "varlen_q"),
      BAD(problem, sinks, -1, "sinks is -1"),
      BAD(problem, sinks, 1, "sinks is NULL"),
      BAD(problem, lse, 2, "lse is 2"),
      BAD(problem, lse, 1, "lse is NULL"),
      BAD(problem, sparse_mla_topk, -1, "sparse_mla_topk", "-1"),
      BAD(problem, sparse_mla_topk, 64, "sparse_mla_topk"),
      BAD(problem, sparse_dynamic, 2, "sparse_dynamic is 2"),
      BAD(problem, sparse_dynamic, 1, "sparse"),
      BAD(problem, uses_shared_paged_kv_idx, 2, "uses_shared_paged_kv_idx is 2"),
      BAD(problem, uses_shared_paged_kv_idx, 0, "uses_shared_paged_kv_idx"),
      BAD(problem, o_sf_start_index, -1, "o_sf_start_index", "-1"),
      BAD(problem, o_sf_scale, kNan, "o_sf_scale"),
      BAD(problem, skip_softmax, kNan, "skip_softmax"),
      BAD(problem, skip_softmax, -1.0F, "skip_softmax"),
      BAD(problem, sage_blocks[1], 3, "sage_blocks"),
      BAD_WITH(problem, sage_blocks, rig.problem.sage_blocks[3] = -1, "sage_blocks"),
      BAD(problem, enable_pdl, 2, "enable_pdl is 2"),
      BAD(problem, max_active_clusters, -2, "max_active_clusters", "-2"),
      BAD(problem, batch_invariant, 2, "batch_invariant is 2"),
      BAD(problem, reserved, 1, "reserved is 1"),
  };
}

std::vector<Bad> bad_devices() {
  return {
      BAD(device, sm, 0, "sm"),
      BAD(device, sm, 7, "sm"),
      BAD(device, num_sms, 0, "num_sms"),
      BAD(device, num_sms, -132, "num_sms", "-132"),
      BAD(device, num_sms, kMax32, "num_sms"),
      BAD(device, max_smem_optin, 0, "max_smem_optin is 0"),
      BAD(device, max_smem_optin, 1000, "no kernel"),
      BAD(device, max_active_clusters[4], -2, "max_active_clusters", "-2"),
      BAD_WITH(device, max_active_clusters, rig.device.max_active_clusters[16] = -7,
               "max_active_clusters", "-7"),
      BAD_WITH(device, name, std::fill(std::begin(rig.device.name), std::end(rig.device.name), 'x'),
               "device.name"),
  };
}

/// An address that is off by `by` bytes.
template <class T>
T* off(T* address, std::ptrdiff_t by) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) +
                              static_cast<std::uintptr_t>(by));
}

#define MISALIGNED(member, by, ...) \
  BAD_WITH(args, member, rig.args.member = off(rig.args.member, by), __VA_ARGS__)
/// An address that this problem's kernels do not take.
#define NOT_TAKEN(member)                                                                     \
  BAD_WITH(args, member,                                                                      \
           rig.args.member = reinterpret_cast<decltype(rig.args.member)>(rig.args.workspace), \
           #member)

std::vector<Bad> bad_args() {
  return {
      BAD(args, q_scale, 0.0F, "q_scale is 0"),
      BAD(args, q_scale, kNan, "q_scale is nan"),
      BAD(args, k_scale, 2.0F, "k_scale is 2", "not quantised"),
      BAD(args, k_scale, kInf, "k_scale is inf"),
      BAD(args, v_scale, 0.5F, "v_scale is 0.5", "not quantised"),
      BAD(args, sm_scale, kNan, "sm_scale is nan"),
      BAD(args, o_scale, 0.0F, "o_scale is 0"),
      BAD(args, o_scale, -kInf, "o_scale is -inf"),
      BAD_WITH(args, q_scale, (rig.args.q_scale = 1e30F, rig.args.sm_scale = 1e30F), "q_scale"),
      BAD(args, q, nullptr, "q is NULL"),
      MISALIGNED(q, 8, "q is 0x", "16 bytes"),
      BAD(args, k, nullptr, "k is NULL"),
      MISALIGNED(k, 2, "k is 0x", "16 bytes"),
      BAD(args, v, nullptr, "v is NULL"),
      MISALIGNED(v, 4, "v is 0x", "16 bytes"),
      BAD(args, o, nullptr, "o is NULL"),
      MISALIGNED(o, 1, "o is 0x", "16 bytes"),
      BAD(args, block_table, nullptr, "block_table is NULL"),
      MISALIGNED(block_table, 2, "block_table is 0x", "4 bytes"),
      BAD(args, seq_lens_kv, nullptr, "seq_lens_kv is NULL"),
      MISALIGNED(seq_lens_kv, 1, "seq_lens_kv is 0x", "4 bytes"),
      NOT_TAKEN(cum_seq_lens_q),
      NOT_TAKEN(sinks),
      NOT_TAKEN(lse),
      BAD_WITH(args, bmm1_scale_log2, rig.args.bmm1_scale_log2 = off<const float>(nullptr, 2),
               "bmm1_scale_log2", "4 bytes"),
      BAD_WITH(args, bmm1_scale_log2,
               (rig.args.bmm1_scale_log2 = off<const float>(nullptr, 64), rig.args.q_scale = 2.0F),
               "bmm1_scale_log2", "q_scale"),
      BAD_WITH(args, bmm2_scale, rig.args.bmm2_scale = off<const float>(nullptr, 3), "bmm2_scale"),
      BAD_WITH(args, bmm2_scale,
               (rig.args.bmm2_scale = off<const float>(nullptr, 64), rig.args.o_scale = 2.0F),
               "bmm2_scale", "o_scale"),
      BAD(args, workspace, nullptr, "workspace (NULL)"),
      MISALIGNED(workspace, 16, "workspace is 0x", "256 bytes"),
      BAD(args, workspace_size, 0, "workspace", "0 bytes"),
      BAD(args, workspace_size, 64, "workspace", "64 bytes"),
      BAD(args, o_stride_tokens, -2, "o_stride_tokens", "-2"),
      BAD(args, o_stride_tokens, 65, "o_stride_tokens", "65"),
      BAD(args, o_stride_tokens, int64_t{1} << 62, "o_stride_tokens"),
      BAD(args, o_stride_heads, 3, "o_stride_heads", "3"),
      NOT_TAKEN(cum_seq_lens_kv),
      NOT_TAKEN(k_sf),
      NOT_TAKEN(v_sf),
      NOT_TAKEN(o_sf),
      NOT_TAKEN(sliding_pool),
      NOT_TAKEN(topk_lens),
      BAD_WITH(args, sage_scales, rig.args.sage_scales[2] = off<const float>(nullptr, 64),
               "sage_scales"),
      BAD(args, o_sf_scale, kNan, "o_sf_scale"),
      BAD(args, o_sf_scale, 2.0F, "o_sf_scale"),
      BAD(args, o_sf_start_index, 4, "o_sf_start_index"),
  };
}

void check_refused(const Bad& bad) {
  CRig rig;
  bad.set(rig);
  INFO(bad.field);
  const cubist_status status = rig.select_and_launch();
  const std::string message =
      rig.last_message.empty() ? cubist_last_error_message() : rig.last_message;
  CHECK((status == CUBIST_STATUS_INVALID_ARGUMENT || status == CUBIST_STATUS_UNSUPPORTED));
  for (const std::string& phrase : bad.phrases) CHECK_THAT(message, Contains(phrase));
  CHECK(cubist::test::fake_cuda().launches().empty());
  CHECK(rig.output_is_untouched());
}

std::vector<Extent> extents_of(const std::vector<Bad>& table) {
  std::vector<Extent> extents;
  for (const Bad& bad : table) extents.push_back({bad.offset, bad.size});
  return extents;
}

}  // namespace

TEST_CASE("a call in which everything is right is launched") {
  CRig rig;
  CHECK(rig.select_and_launch() == CUBIST_STATUS_OK);
  CHECK_FALSE(rig.output_is_untouched());
  CHECK(cubist_runtime_launch(rig.runtime, &rig.problem, nullptr, &rig.args, nullptr) ==
        CUBIST_STATUS_OK);
  CHECK(cubist::test::fake_cuda().launches().size() == 2);
}

TEST_CASE("each wrong value of a problem is refused by name, and nothing is written") {
  const std::vector<Bad> table = bad_problems();
  check_covered<cubist_attention_problem>(extents_of(table));
  for (const Bad& bad : table) check_refused(bad);
  std::printf("%zu wrong problems refused\n", table.size());
}

TEST_CASE("each wrong value of a device is refused by name") {
  const std::vector<Bad> table = bad_devices();
  check_covered<cubist_device>(extents_of(table));
  for (const Bad& bad : table) check_refused(bad);
  std::printf("%zu wrong devices refused\n", table.size());
}

TEST_CASE("each wrong value of a launch's arguments is refused by name, and nothing is written") {
  const std::vector<Bad> table = bad_args();
  std::vector<Extent> extents = extents_of(table);
  // It has a table of its own.
  extents.push_back({offsetof(cubist_attention_args, o_layout), sizeof(void*)});
  check_covered<cubist_attention_args>(extents);
  for (const Bad& bad : table) check_refused(bad);
  std::printf("%zu wrong arguments refused\n", table.size());
}
