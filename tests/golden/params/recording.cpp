#include "recording.h"

#include <zlib.h>

#include <array>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace cubist::test {
namespace {

using Json = nlohmann::json;

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::string text;
  std::array<char, 1 << 16> buffer;
  int got = 0;
  while ((got = gzread(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  return text;
}

template <class T>
void take(const Json& in, const char* key, T& field) {
  if (in.contains(key)) field = in.at(key).get<T>();
}

void take_dtype(const Json& in, const char* key, Dtype& field) {
  if (in.contains(key)) field = parse_dtype(in.at(key).get<std::string>()).value();
}

void take_scale(const Json& in, const char* key, ScaleArgument& scale) {
  if (!in.contains(key)) return;
  if (in.at(key).is_string()) {
    scale.on_device = true;
  } else {
    scale.value = in.at(key).get<double>();
  }
}

AttentionProblem problem_from(const Json& in) {
  AttentionProblem p;
  p.phase = parse_phase(in.at("phase").get<std::string>()).value();
  take_dtype(in, "dtype_q", p.dtype_q);
  take_dtype(in, "dtype_kv", p.dtype_k);
  take_dtype(in, "dtype_kv", p.dtype_v);
  take_dtype(in, "dtype_k", p.dtype_k);
  take_dtype(in, "dtype_v", p.dtype_v);
  take_dtype(in, "dtype_o", p.dtype_o);
  for (const auto& [key, field] : std::initializer_list<std::pair<const char*, std::int32_t*>>{
           {"head_dim_qk", &p.head_dim_qk},
           {"head_dim_vo", &p.head_dim_vo},
           {"num_q_heads", &p.num_q_heads},
           {"num_kv_heads", &p.num_kv_heads},
           {"batch", &p.batch},
           {"max_q_len", &p.max_q_len},
           {"max_kv_len", &p.max_kv_len},
           {"page_size", &p.page_size},
           {"max_pages_per_seq", &p.max_pages_per_seq},
           {"window_left", &p.window_left},
           {"sparse_mla_topk", &p.sparse_mla_topk},
           {"o_sf_start_index", &p.o_sf_start_index}}) {
    take(in, key, *field);
  }
  for (const auto& [key, field] : std::initializer_list<std::pair<const char*, std::int64_t*>>{
           {"sum_seq_q", &p.sum_seq_q},
           {"sum_seq_kv", &p.sum_seq_kv},
           {"num_pages", &p.num_pages},
           {"q_stride_tokens", &p.q_stride_tokens},
           {"q_stride_heads", &p.q_stride_heads},
           {"kv_stride_batch", &p.kv_stride_batch},
           {"kv_stride_heads", &p.kv_stride_heads},
           {"kv_stride_tokens", &p.kv_stride_tokens},
           {"k_stride_tokens", &p.k_stride_tokens},
           {"k_stride_heads", &p.k_stride_heads},
           {"v_stride_tokens", &p.v_stride_tokens},
           {"v_stride_heads", &p.v_stride_heads},
           {"lse_stride_tokens", &p.lse_stride_tokens},
           {"lse_stride_heads", &p.lse_stride_heads},
           {"workspace_size", &p.workspace_size}}) {
    take(in, key, *field);
  }
  for (const auto& [key, field] : std::initializer_list<std::pair<const char*, bool*>>{
           {"kv_combined", &p.kv_combined},
           {"is_mla", &p.is_mla},
           {"causal", &p.causal},
           {"varlen_q", &p.varlen_q},
           {"sinks", &p.sinks},
           {"lse", &p.lse},
           {"sparse_dynamic", &p.sparse_dynamic},
           {"enable_pdl", &p.enable_pdl},
           {"uses_shared_paged_kv_idx", &p.uses_shared_paged_kv_idx}}) {
    take(in, key, *field);
  }
  if (in.contains("kv_layout"))
    p.kv_layout = parse_kv_layout(in.at("kv_layout").get<std::string>()).value();
  if (p.dtype_k == Dtype::kE2m1) p.kv_layout = KvLayout::kHnd;  // the only layout of FP4 KV
  take(in, "o_sf_scale", p.o_sf_scale);
  take_scale(in, "bmm1_scale", p.bmm1_scale);
  take_scale(in, "bmm2_scale", p.bmm2_scale);
  if (in.contains("skip_softmax")) p.skip_softmax = in.at("skip_softmax").get<float>();
  take(in, "sage_blocks", p.sage_blocks);
  return p;
}

KernelRecord record_from(const Json& line, const AttentionProblem& p) {
  KernelRecord record;
  record.name = line.at("kernel").get<std::string>();
  KernelTraits& t = record.traits;
  t.dtype_q = p.dtype_q;
  t.dtype_k = p.dtype_k;
  t.dtype_v = p.dtype_v;
  t.dtype_o = p.dtype_o;
  take(line, "tile_q", t.tile_q);
  take(line, "step_q", t.step_q);
  take(line, "tile_kv", t.tile_kv);
  take(line, "step_kv", t.step_kv);
  take(line, "head_dim_per_cta_v", t.head_dim_per_cta_v);
  take(line, "groups_heads_q", t.groups_heads_q);
  take(line, "groups_tokens_heads_q", t.groups_tokens_heads_q);
  take(line, "two_cta_mma", t.two_cta_mma);
  t.kernel_type = static_cast<KernelType>(line.at("kernel_type").get<int>());
  t.multi_ctas_kv_mode = static_cast<MultiCtasKvMode>(line.at("multi_ctas_kv_mode").get<int>());
  if (p.phase == Phase::kDecode && p.sparse_mla_topk > 0) {
    t.sparse_type = p.sparse_dynamic ? SparseType::kDynamicTokens : SparseType::kStaticTokens;
  }
  const bool sage = p.phase == Phase::kRagged;
  t.sage_block_q = sage ? static_cast<std::uint8_t>(p.sage_blocks[0]) : 0;
  t.sage_block_k = sage ? static_cast<std::uint8_t>(p.sage_blocks[1]) : 0;
  t.sage_block_p = sage ? static_cast<std::uint8_t>(p.sage_blocks[2]) : 0;
  t.sage_block_v = sage ? static_cast<std::uint8_t>(p.sage_blocks[3]) : 0;
  return record;
}

std::string_view static_slot(const std::string& slot) {
  for (const std::string_view known : {"q", "k", "k_swa_pool", "v", "o", "k_sf", "v_sf"}) {
    if (known == slot) return known;
  }
  throw std::runtime_error("unknown slot " + slot);
}

TensorMapSpec map_from(const Json& json) {
  TensorMapSpec spec;
  spec.slot = static_slot(json.at("slot").get<std::string>());
  spec.address = std::stoull(json.at("addr").get<std::string>(), nullptr, 16);
  spec.type = static_cast<TensorMapType>(json.at("dtype").get<std::uint32_t>());
  spec.rank = static_cast<std::uint32_t>(json.at("dims").size());
  for (std::size_t i = 0; i < spec.rank; ++i) {
    spec.dims[i] = json.at("dims")[i].get<std::uint64_t>();
    spec.box[i] = json.at("box")[i].get<std::uint32_t>();
    if (i > 0) spec.strides[i - 1] = json.at("strides")[i - 1].get<std::uint64_t>();
  }
  spec.swizzle = static_cast<TensorMapSwizzle>(json.at("swizzle").get<std::uint32_t>());
  return spec;
}

/// The scalars behind the parameter block. 0.6.13: sparse, groups tokens, dynamic sparse, workers a
/// tile, head CTAs, head_dim_vo, column CTAs. 0.6.8: sparse, workers, head CTAs, column CTAs.
void take_reduction(const Json& kernel, const KernelTraits& traits, LaunchPlan& plan) {
  if (kernel.is_null()) return;
  const auto scalars = kernel.at("scalars").get<std::vector<std::int32_t>>();
  const bool old = plan.revision == HeuristicRevision::kTrtllmGenFmha_0_6_8;
  plan.reduction.needed = true;
  plan.reduction.grid = kernel.at("grid").get<std::array<std::uint32_t, 3>>();
  plan.reduction.block = kernel.at("block").at(0).get<std::uint32_t>();
  plan.reduction.ctas_per_tile = scalars.at(old ? 1 : 3);
  plan.reduction.num_head_ctas = scalars.at(old ? 2 : 4);
  plan.reduction.num_head_dim_ctas = scalars.at(old ? 3 : 6);
  plan.reduction.head_dim_per_cta = traits.head_dim_per_cta_v * (traits.two_cta_mma ? 2 : 1);
}

void take_lse(const Json& kernel, LaunchPlan& plan) {
  if (kernel.is_null()) return;
  plan.lse.needed = true;
  plan.lse.grid = kernel.at("grid").get<std::array<std::uint32_t, 3>>();
  plan.lse.block = kernel.at("block").at(0).get<std::uint32_t>();
}

RecordedLaunch launch_from(const Json& line, HeuristicRevision revision) {
  RecordedLaunch launch;
  const Json& in = line.at("in");
  launch.id = in.at("id").get<std::string>();
  launch.problem = problem_from(in);
  launch.num_sms = in.value("num_sms", 148);
  launch.record = record_from(line, launch.problem);
  launch.plan.revision = revision;
  launch.plan.grid = line.at("grid").get<std::array<std::uint32_t, 3>>();
  take(line, "num_ctas_q", launch.plan.num_ctas_q);
  take(line, "num_ctas_kv", launch.plan.num_ctas_kv);
  take(line, "num_tokens_per_cta_q", launch.plan.num_tokens_per_cta_q);
  take(line, "num_heads_per_cta", launch.plan.num_heads_per_cta);
  take_reduction(line.at("reduction_kernel"), launch.record.traits, launch.plan);
  take_lse(line.at("lse_kernel"), launch.plan);
  take(line, "reshape_factor_kv", launch.reshape_factor_kv);
  launch.params_hex = line.at("params_hex").get<std::string>();
  launch.params_offset = line.at("params_hex_offset").get<std::size_t>();
  launch.params_size = line.at("params_size").get<std::size_t>();
  for (const Json& map : line.at("tensor_maps")) launch.tensor_maps.push_back(map_from(map));
  return launch;
}

}  // namespace

std::vector<RecordedLaunch> read_recorded_launches(const std::string& path,
                                                   HeuristicRevision revision) {
  const std::string text = read_gzip(path);
  std::vector<RecordedLaunch> launches;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(start),
                                  text.begin() + static_cast<std::ptrdiff_t>(end));
    start = end + 1;
    if (line.at("ok").get<bool>()) launches.push_back(launch_from(line, revision));
  }
  return launches;
}

}  // namespace cubist::test
