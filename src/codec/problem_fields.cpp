#include "codec/problem_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <utility>
#include <vector>

#include "base/count.h"
#include "selector/occupancy.h"

namespace cubist {
namespace {

using P = AttentionProblem;
using D = DeviceProfile;

constexpr auto kFields = std::to_array<ProblemField>({
    {"batch", "sequences", &P::batch},
    {"batch_invariant", "a sequence's bits do not depend on the others, nor on the SMs",
     &P::batch_invariant},
    {"bmm1_scale", "softmax scale, or ptr: read on the device", &P::bmm1_scale},
    {"bmm2_scale", "output scale, or ptr: read on the device", &P::bmm2_scale},
    {"causal", "causal mask; false: dense", &P::causal},
    {"chunk_size", "tokens of one attention chunk; 0: off", &P::chunk_size},
    {"custom_mask", "not served; refused by name", &P::custom_mask},
    {"dtype_k", "type of K where it differs from V's", &P::dtype_k},
    {"dtype_kv", "type of K and V: fp16 bf16 e4m3 e2m1 int8", ProblemField::BothKvTypes{}},
    {"dtype_o", "output type: fp16 bf16 e4m3 e2m1", &P::dtype_o},
    {"dtype_q", "query type: fp16 bf16 e4m3 int8", &P::dtype_q},
    {"dtype_v", "type of V where it differs from K's", &P::dtype_v},
    {"enable_pdl", "programmatic dependent launch", &P::enable_pdl},
    {"gpcs", "SMs of each GPC, for the cluster-occupancy model", ProblemField::Gpcs{}},
    {"head_dim_qk", "elements per head of Q and K", &P::head_dim_qk},
    {"head_dim_vo", "elements per head of V and O; default: head_dim_qk", &P::head_dim_vo},
    {"is_mla", "the V tensor is the K tensor (one-copy KV)", &P::is_mla},
    {"k_stride_heads", "ragged, elements", &P::k_stride_heads},
    {"k_stride_tokens", "ragged, elements", &P::k_stride_tokens},
    {"kv_combined", "K and V are the halves of one tensor", &P::kv_combined},
    {"kv_layout", "HND or NHD", &P::kv_layout},
    {"kv_stride_batch", "paged, elements from page to page", &P::kv_stride_batch},
    {"kv_stride_heads", "paged, elements", &P::kv_stride_heads},
    {"kv_stride_tokens", "paged, elements", &P::kv_stride_tokens},
    {"lse", "return log-sum-exp", &P::lse},
    {"lse_stride_heads", "elements", &P::lse_stride_heads},
    {"lse_stride_tokens", "elements", &P::lse_stride_tokens},
    {"max_active_clusters", "answer to the cluster-occupancy question", &P::max_active_clusters},
    {"max_kv_len", "longest KV sequence, tokens", &P::max_kv_len},
    {"max_pages_per_seq", "width of the block table; default: what max_kv_len needs",
     &P::max_pages_per_seq},
    {"max_q_len", "most query tokens of a sequence", &P::max_q_len},
    {"num_kv_heads", "KV heads", &P::num_kv_heads},
    {"num_pages", "pages in the pool; default: batch * max_pages_per_seq", &P::num_pages},
    {"num_q_heads", "query heads", &P::num_q_heads},
    {"num_sms", "streaming multiprocessors of the device", &D::num_sms},
    {"o_sf_scale", "e2m1 output: global scale", &P::o_sf_scale},
    {"o_sf_start_index", "e2m1 output: first row in the scale tensor", &P::o_sf_start_index},
    {"packed_qkv", "not served; refused by name", &P::packed_qkv},
    {"page_size", "tokens per KV page", &P::page_size},
    {"phase", "decode, context or ragged", &P::phase},
    {"q_stride_heads", "elements", &P::q_stride_heads},
    {"q_stride_tokens", "elements", &P::q_stride_tokens},
    {"sage_blocks", "SageAttention blocks of q,k,p,v; 0: off", &P::sage_blocks},
    {"sinks", "attention sinks, one per query head", &P::sinks},
    {"skip_softmax", "threshold scale factor; 0: off", &P::skip_softmax},
    {"sm", "compute capability of the device: 90, 100, 103", &D::sm},
    {"sparse_dynamic", "per-token top-k lengths", &P::sparse_dynamic},
    {"sparse_mla_topk", "keys each token attends to; 0: all", &P::sparse_mla_topk},
    {"sum_seq_kv", "KV tokens; default: batch * max_kv_len", &P::sum_seq_kv},
    {"sum_seq_q", "query tokens; default: batch * max_q_len", &P::sum_seq_q},
    {"uses_shared_paged_kv_idx", "K and V share page indices", &P::uses_shared_paged_kv_idx},
    {"v_stride_heads", "ragged, elements", &P::v_stride_heads},
    {"v_stride_tokens", "ragged, elements", &P::v_stride_tokens},
    {"varlen_q", "decode: cumulative query lengths are given", &P::varlen_q},
    {"window_left", "tokens left of the query's own; -1: no window", &P::window_left},
    {"workspace_size", "bytes", &P::workspace_size},
});

constexpr bool is_sorted() {
  for (std::size_t i = 1; i < kFields.size(); ++i) {
    if (!(kFields[i - 1].name < kFields[i].name)) return false;
  }
  return true;
}
static_assert(is_sorted(), "find_problem_field searches by halves");

tl::unexpected<Error> bad_value(const ProblemField& field, std::string_view text,
                                std::string_view accepted) {
  return fail(StatusCode::kInvalidArgument, "{} is '{}'; expected {}", field.name, text, accepted);
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <std::integral T>
bool parse_whole(std::string_view text, T& value) {
  const auto number = parse_count(text);
  if (!number || !std::in_range<T>(*number)) return false;
  value = static_cast<T>(*number);
  return true;
}

bool parse_list(std::string_view text, std::vector<std::int32_t>& values) {
  while (true) {
    const std::size_t comma = text.find(',');
    std::int32_t value = 0;
    if (!parse_number(text.substr(0, comma), value)) return false;
    values.push_back(value);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

/// One overload per kind of member; each sets `out` or says what it would have taken.
struct Setter {
  const ProblemField& field;
  std::string_view text;
  ProblemAndDevice& out;

  template <class T, class Owner>
  Status whole(T Owner::*member, Owner& owner) const {
    if (parse_whole(text, owner.*member)) return {};
    return bad_value(field, text, "a whole number that fits the field (k = 1,024)");
  }
  template <class T, class Parse>
  Status word(T P::*member, Parse parse, std::string_view accepted) const {
    const auto value = parse(text);
    if (!value) return bad_value(field, text, accepted);
    out.problem.*member = *value;
    return {};
  }

  Status operator()(std::int32_t P::*m) const { return whole(m, out.problem); }
  Status operator()(std::int64_t P::*m) const { return whole(m, out.problem); }
  Status operator()(std::uint32_t D::*m) const { return whole(m, out.device); }
  Status operator()(std::int32_t D::*m) const { return whole(m, out.device); }
  Status operator()(float P::*m) const {
    if (parse_number(text, out.problem.*m)) return {};
    return bad_value(field, text, "a number");
  }
  Status operator()(bool P::*m) const {
    if (text != "true" && text != "false") return bad_value(field, text, "true or false");
    out.problem.*m = text == "true";
    return {};
  }
  Status operator()(std::optional<float> P::*m) const {
    float value = 0;
    if (!parse_number(text, value)) return bad_value(field, text, "a number");
    out.problem.*m = value;
    return {};
  }
  Status operator()(ScaleArgument P::*m) const {
    ScaleArgument scale;
    scale.on_device = text == "ptr";
    if (!scale.on_device && !parse_number(text, scale.value)) {
      return bad_value(field, text, "a number or ptr");
    }
    out.problem.*m = scale;
    return {};
  }
  Status operator()(Dtype P::*m) const {
    return word(m, parse_dtype,
                "one of fp16 bf16 fp32 int8 int32 e4m3 e5m2 e2m1 (fp8 is e4m3 or e5m2)");
  }
  Status operator()(Phase P::*m) const {
    return word(m, parse_phase, "one of decode context ragged");
  }
  Status operator()(KvLayout P::*m) const { return word(m, parse_kv_layout, "HND or NHD"); }
  Status operator()(std::array<std::int32_t, 4> P::*m) const {
    std::vector<std::int32_t> values;
    if (!parse_list(text, values) || values.size() != 4) {
      return bad_value(field, text, "four integers: q,k,p,v");
    }
    std::copy(values.begin(), values.end(), (out.problem.*m).begin());
    return {};
  }
  Status operator()(ProblemField::BothKvTypes) const {
    CUBIST_RETURN_IF_ERROR((*this)(&P::dtype_k));
    return (*this)(&P::dtype_v);
  }
  Status operator()(ProblemField::Gpcs) const {
    std::vector<std::int32_t> values;
    if (!parse_list(text, values)) return bad_value(field, text, "integers: 18,18,20");
    CUBIST_RETURN_IF_ERROR(check_gpcs(values));
    out.device.max_active_clusters = selector::clusters_from_gpcs(values);
    return {};
  }
};

}  // namespace

std::span<const ProblemField> problem_fields() { return kFields; }

const ProblemField* find_problem_field(std::string_view name) {
  const auto* at = std::lower_bound(
      kFields.begin(), kFields.end(), name,
      [](const ProblemField& field, std::string_view wanted) { return field.name < wanted; });
  return at != kFields.end() && at->name == name ? at : nullptr;
}

Status set_field(const ProblemField& field, std::string_view text, ProblemAndDevice& out) {
  return std::visit(Setter{field, text, out}, field.member);
}

Status check_gpcs(std::span<const std::int32_t> gpc_sms) {
  if (gpc_sms.empty() || gpc_sms.size() > kMaxGpcs) {
    return fail(StatusCode::kInvalidArgument, "gpcs names {} GPCs; it must be 1..{}",
                gpc_sms.size(), kMaxGpcs);
  }
  for (const std::int32_t sms : gpc_sms) {
    if (sms >= 1 && sms <= kMaxSmsOfGpc) continue;
    return fail(StatusCode::kInvalidArgument,
                "gpcs holds {}; the SMs of a GPC must be 1..{}, for example 18,18,20", sms,
                kMaxSmsOfGpc);
  }
  return {};
}

void complete_device(DeviceProfile& device) {
  const bool known =
      std::any_of(device.max_active_clusters.begin(), device.max_active_clusters.end(),
                  [](std::int32_t answer) { return answer >= 0; });
  if (known || device.num_sms <= 0) return;
  device.max_active_clusters =
      selector::clusters_from_gpcs(selector::modelled_gpcs(device.num_sms));
}

}  // namespace cubist
