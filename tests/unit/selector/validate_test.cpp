#include "selector/validate.h"

#include <functional>
#include <limits>

#include "kernels.h"
#include "selector/select.h"
#include "support/catch.h"

namespace cubist {
namespace {

constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

AttentionProblem good() {
  AttentionProblem p;
  p.num_q_heads = 64;
  return p;
}

struct BadField {
  const char* field;
  const char* rule;
  std::function<void(AttentionProblem&)> change;
};

const std::vector<BadField> kBadFields = {
    {"num_q_heads is 0", "1..65535", [](auto& p) { p.num_q_heads = 0; }},
    {"num_q_heads is -8", "1..65535", [](auto& p) { p.num_q_heads = -8; }},
    {"num_q_heads is 65536", "1..65535", [](auto& p) { p.num_q_heads = 65536; }},
    {"num_kv_heads is 0", "1..65535", [](auto& p) { p.num_kv_heads = 0; }},
    {"num_q_heads is 64", "multiple of num_kv_heads, 7", [](auto& p) { p.num_kv_heads = 7; }},
    {"head_dim_qk is 0", "32..1024", [](auto& p) { p.head_dim_qk = 0; }},
    {"head_dim_qk is 2048", "32..1024", [](auto& p) { p.head_dim_qk = 2048; }},
    {"head_dim_vo is 16", "32..1024", [](auto& p) { p.head_dim_vo = 16; }},
    {"batch is 0", "1..65535", [](auto& p) { p.batch = 0; }},
    {"batch is 65536", "1..65535", [](auto& p) { p.batch = 65536; }},
    {"max_q_len is 0", "1..", [](auto& p) { p.max_q_len = 0; }},
    {"max_kv_len is -1", "1..", [](auto& p) { p.max_kv_len = -1; }},
    {"batch * max_q_len is", "32 bits", [](auto& p) { p.batch = 2, p.max_q_len = kMax; }},
    {"sum_seq_q is 3", "1..2", [](auto& p) { p.batch = 2, p.sum_seq_q = 3; }},
    {"sum_seq_q is 0", "1..1", [](auto& p) { p.sum_seq_q = 0; }},
    {"sum_seq_kv is 1025", "0..1024", [](auto& p) { p.sum_seq_kv = 1025; }},
    {"sum_seq_kv is", "32 bits",
     [](auto& p) { p.phase = Phase::kRagged, p.batch = 3, p.max_kv_len = kMax; }},
    {"page_size is 0", "power of two", [](auto& p) { p.page_size = 0; }},
    {"page_size is 48", "power of two", [](auto& p) { p.page_size = 48; }},
    {"page_size is -64", "power of two", [](auto& p) { p.page_size = -64; }},
    {"max_pages_per_seq is 0", "1..", [](auto& p) { p.max_pages_per_seq = 0; }},
    {"num_pages is 0", "1..", [](auto& p) { p.num_pages = 0; }},
    {"num_pages is 9223372036854775807", "1..", [](auto& p) { p.num_pages = kHuge; }},
    {"num_pages would be", "larger pages",
     [](auto& p) { p.batch = 4, p.max_kv_len = kMax, p.page_size = 1; }},
    {"batch * max_pages_per_seq is 8589934588", "at most 2147483647 entries",
     [](auto& p) { p.batch = 4, p.max_pages_per_seq = kMax, p.num_pages = 1000; }},
    {"page_size * num_kv_heads * head_dim is 1099511627776", "2^39 bytes",
     [](auto& p) { p.page_size = 1 << 30; }},
    {"sum_seq_kv is 0", "at least one token",
     [](auto& p) { p.phase = Phase::kRagged, p.sum_seq_kv = 0; }},
    {"sum_seq_q * num_q_heads is 8388608000", "at most 2147483647",
     [](auto& p) { p.lse = true, p.batch = 1000, p.max_q_len = 131072; }},
    {"custom_mask is true", "no kernel is asked", [](auto& p) { p.custom_mask = true; }},
    {"packed_qkv is true", "no kernel is asked", [](auto& p) { p.packed_qkv = true; }},
    {"window_left is -2", "-1..", [](auto& p) { p.window_left = -2; }},
    {"window_left is 2147483647", "-1..", [](auto& p) { p.window_left = kMax; }},
    {"chunk_size is 1000", "power of two", [](auto& p) { p.chunk_size = 1000; }},
    {"chunk_size is -4", "power of two", [](auto& p) { p.chunk_size = -4; }},
    {"chunk_size is 1024 and window_left is 5", "not both",
     [](auto& p) { p.chunk_size = 1024, p.window_left = 5; }},
    {"chunk_size is 1024 and causal is false", "chunked attention is causal",
     [](auto& p) { p.phase = Phase::kContext, p.chunk_size = 1024, p.causal = false; }},
    {"sum_seq_q is 3 with sparse_dynamic", "it must be batch * max_q_len, 4",
     [](auto& p) {
       p.sparse_dynamic = true, p.sparse_mla_topk = 64, p.num_kv_heads = 1;
       p.max_q_len = 4, p.sum_seq_q = 3;
     }},
    {"sparse_mla_topk is 130", "multiple of 4", [](auto& p) { p.sparse_mla_topk = 130; }},
    {"sparse_mla_topk is -4", "0..", [](auto& p) { p.sparse_mla_topk = -4; }},
    {"sparse_dynamic is true", "sparse_mla_topk above 0", [](auto& p) { p.sparse_dynamic = true; }},
    {"num_kv_heads is 8", "one KV head",
     [](auto& p) { p.sparse_dynamic = true, p.sparse_mla_topk = 64; }},
    {"sage_blocks holds 3", "power of two",
     [](auto& p) {
       p.phase = Phase::kRagged, p.sage_blocks = {1, 3, 0, 1};
     }},
    {"sage_blocks holds -1", "power of two",
     [](auto& p) {
       p.phase = Phase::kRagged, p.sage_blocks = {-1, 0, 0, 0};
     }},
    {"sage_blocks are set with phase decode", "ragged",
     [](auto& p) {
       p.sage_blocks = {1, 1, 0, 1};
     }},
    {"q_stride_tokens is -5", "16 bytes", [](auto& p) { p.q_stride_tokens = -5; }},
    {"q_stride_tokens is 4100", "16 bytes", [](auto& p) { p.q_stride_tokens = 4100; }},
    {"kv_stride_batch is 9223372036854775807", "2^40", [](auto& p) { p.kv_stride_batch = kHuge; }},
    {"v_stride_heads is 4398046511104", "2^40",
     [](auto& p) { p.v_stride_heads = std::int64_t{1} << 42; }},
    {"lse_stride_tokens is -2", "-1..", [](auto& p) { p.lse_stride_tokens = -2; }},
    {"lse_stride_heads is 4294967296", "-1..",
     [](auto& p) { p.lse_stride_heads = std::int64_t{1} << 32; }},
    {"bmm1_scale is inf", "finite",
     [](auto& p) { p.bmm1_scale.value = std::numeric_limits<double>::infinity(); }},
    {"bmm2_scale is nan", "finite",
     [](auto& p) { p.bmm2_scale.value = std::numeric_limits<double>::quiet_NaN(); }},
    {"o_sf_scale is inf", "finite",
     [](auto& p) { p.o_sf_scale = std::numeric_limits<float>::infinity(); }},
    {"o_sf_start_index is -1", "0..", [](auto& p) { p.o_sf_start_index = -1; }},
    {"skip_softmax is -1", "at least 0", [](auto& p) { p.skip_softmax = -1.0F; }},
    {"workspace_size is -1", "0..", [](auto& p) { p.workspace_size = -1; }},
    {"max_active_clusters is -2", "-1..", [](auto& p) { p.max_active_clusters = -2; }},
    {"dtype_q has the unknown value 8", "", [](auto& p) { p.dtype_q = Dtype::kUnknown; }},
    {"dtype_o has the unknown value 200", "", [](auto& p) { p.dtype_o = static_cast<Dtype>(200); }},
    {"phase has the unknown value 3", "", [](auto& p) { p.phase = static_cast<Phase>(3); }},
    {"kv_layout has the unknown value 2", "",
     [](auto& p) { p.kv_layout = static_cast<KvLayout>(2); }},
};

}  // namespace

TEST_CASE("a good problem passes, with derived fields left out or given") {
  AttentionProblem p = good();
  CHECK(selector::validate_problem(p).has_value());
  p.head_dim_vo = 128;
  p.sum_seq_q = 1;
  p.sum_seq_kv = 1024;
  p.max_pages_per_seq = 16;
  p.num_pages = 16;
  p.q_stride_tokens = 64 * 128;
  CHECK(selector::validate_problem(p).has_value());
}

TEST_CASE("every bad field is refused with field, value and rule") {
  for (const BadField& bad : kBadFields) {
    AttentionProblem p = good();
    bad.change(p);
    const Status status = selector::validate_problem(p);
    INFO(bad.field);
    REQUIRE_FALSE(status.has_value());
    INFO(status.error().message());
    CHECK(status.error().message().find(bad.field) != std::string::npos);
    CHECK(status.error().message().find(bad.rule) != std::string::npos);
    const auto selection = selector::select(selector::KernelTable{}, p, test::b200());
    REQUIRE_FALSE(selection.has_value());
    CHECK(selection.error().message() == status.error().message());
  }
}

TEST_CASE("a device that is none is refused") {
  DeviceProfile device = test::b200();
  device.num_sms = 0;
  Status status = selector::validate_device(device);
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().message() == "num_sms is 0; it must be 1..65535");
  device = test::b200();
  device.sm = 7;
  status = selector::validate_device(device);
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().message() == "sm is 7; it must be 10..999");
}

}  // namespace cubist
