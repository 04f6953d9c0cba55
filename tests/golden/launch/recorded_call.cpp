#include "recorded_call.h"

#include <cstring>

#include "../select/recordings.h"
#include "base/hex.h"
#include "codec/problem_json.h"
#include "launcher/scales.h"
#include "model/aux_params.h"
#include "model/derived_problem.h"
#include "support/catch.h"

namespace cubist::test {
namespace {

using nlohmann::json;

constexpr std::uint64_t at_16_tib(std::uint64_t n) { return n << 44; }
constexpr std::uint64_t at_tib(std::uint64_t n) { return n << 40; }

/// Published offsets in the two layouts.
struct Offsets {
  std::size_t scale_softmax_log2, partial_o, partial_stats, softmax_stats;
  std::map<std::string, std::size_t> maps;
};
const Offsets& offsets_of(const RecordedCall& call) {
  static const Offsets k1280 = {1220,
                                1008,
                                1016,
                                1096,
                                {{"q", 0},
                                 {"k", 128},
                                 {"k_swa_pool", 256},
                                 {"v", 384},
                                 {"o", 512},
                                 {"k_sf", 640},
                                 {"v_sf", 768}}};
  static const Offsets k1152 = {
      1080,
      880,
      888,
      968,
      {{"q", 0}, {"k", 128}, {"v", 256}, {"o", 384}, {"k_sf", 512}, {"v_sf", 640}}};
  return call.recording["params_size"] == 1280 ? k1280 : k1152;
}

bool splits_head_groups(const json& recording) {
  const int step_q = recording["step_q"];
  const int heads_per_kv =
      recording["in"]["num_q_heads"].get<int>() / recording["in"]["num_kv_heads"].get<int>();
  return recording["in"]["phase"] == "decode" && heads_per_kv > step_q &&
         heads_per_kv % step_q != 0;
}

template <class Numbers>
std::string different(const char* what, const Numbers& ours, const json& recorded) {
  if (json(ours) == recorded) return {};
  return std::string(what) + ": recorded " + recorded.dump() + ", launched " + json(ours).dump();
}

std::string geometry_difference(const json& recorded, const FakeLaunch& launch) {
  for (const std::string& text :
       {different("grid", launch.grid, recorded["grid"]),
        different("block", launch.block, recorded["block"]),
        different("smem", launch.smem, recorded["smem"]),
        different("pdl", launch.pdl,
                  recorded["pdl"].is_number() ? json(recorded["pdl"] != 0) : recorded["pdl"])}) {
    if (!text.empty()) return text;
  }
  return {};
}

std::string map_difference(const json& recorded, const FakeTensorMap& map) {
  json ours = {{"slot", recorded["slot"]}, {"addr", fmt::format("{:#x}", map.address)},
               {"dtype", map.type},        {"interleave", map.interleave},
               {"swizzle", map.swizzle},   {"l2", map.l2_promotion},
               {"oob", map.oob_fill}};
  for (std::size_t i = 0; i < map.rank; ++i) {
    ours["dims"].push_back(map.dims[i]);
    ours["box"].push_back(map.box[i]);
    ours["elem_strides"].push_back(map.element_strides[i]);
    if (i > 0) ours["strides"].push_back(map.strides[i - 1]);
  }
  if (ours == recorded) return {};
  return "recorded " + recorded.dump() + ", launched " + ours.dump();
}

std::string scalars_difference(const RecordedCall& call, const FakeLaunch& launch) {
  const std::size_t offset = call.recording["params_hex_offset"];
  std::string expected = call.recording["params_hex"];
  const ScaleArgument& bmm1 = call.value.problem.bmm1_scale;
  if (!bmm1.on_device) {
    const float scale = launcher::scale_log2(static_cast<double>(static_cast<float>(bmm1.value)));
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &scale, sizeof(scale));
    expected.replace(2 * (offsets_of(call).scale_softmax_log2 - offset), 8, to_hex(bytes));
  }
  const std::string ours = to_hex(std::span(launch.params).subspan(offset));
  for (std::size_t i = 0; i < expected.size(); i += 8) {
    if (ours.substr(i, 8) == expected.substr(i, 8)) continue;
    return fmt::format("bytes {}..: recorded {}, launched {}", offset + i / 2,
                       expected.substr(i, 8), ours.substr(i, 8));
  }
  return ours.size() == expected.size() ? "" : "the size of the block";
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

template <class Params>
Params params_of(const FakeLaunch& launch) {
  Params params;
  REQUIRE(launch.params.size() == sizeof(params));
  std::memcpy(&params, launch.params.data(), sizeof(params));
  return params;
}

}  // namespace

launcher::CallArgs RecordedCall::args() const {
  const AttentionProblem p = with_derived_fields(value.problem);
  const bool decode = p.phase == Phase::kDecode;
  const auto where = [](bool wanted, std::uint64_t address) { return wanted ? address : 0; };
  launcher::CallArgs args;
  args.q = at_16_tib(1);
  args.k = at_16_tib(2);
  args.v = where(!p.is_mla, at_16_tib(3));
  if (p.kv_combined && !p.is_mla) {
    args.v = args.k + static_cast<std::uint64_t>(p.num_kv_heads) *
                          static_cast<std::uint64_t>(p.page_size) *
                          static_cast<std::uint64_t>(p.head_dim_qk) * dtype_bits(p.dtype_k) / 8;
  }
  args.o = at_16_tib(4);
  args.o_sf = where(p.dtype_o == Dtype::kE2m1, at_16_tib(5));
  args.workspace = at_16_tib(6);
  args.block_table = where(p.phase != Phase::kRagged, at_16_tib(7));
  args.seq_lens_kv = at_tib(0x71);
  args.cum_seq_lens_q = where(!decode || p.varlen_q, at_tib(0x72));
  args.cum_seq_lens_kv = where(!decode, at_tib(0x73));
  args.sinks = where(p.sinks, at_tib(0x74));
  args.lse = where(p.lse && !p.sparse_dynamic, at_tib(0x75));
  args.k_sf = where(p.dtype_k == Dtype::kE2m1, at_tib(0x76));
  args.v_sf = where(p.dtype_k == Dtype::kE2m1, at_tib(0x77));
  args.bmm1_scale_log2 = where(p.bmm1_scale.on_device, at_tib(0x78));
  args.bmm2_scale = where(p.bmm2_scale.on_device, at_tib(0x79));
  if (!p.bmm1_scale.on_device) args.scales.sm_scale = static_cast<float>(p.bmm1_scale.value);
  if (!p.bmm2_scale.on_device) args.scales.o_scale = static_cast<float>(p.bmm2_scale.value);
  args.sliding_pool = where(p.sparse_dynamic, at_tib(0x7a));
  args.topk_lens = where(p.sparse_dynamic, at_tib(0x7b));
  for (std::size_t i = 0; i < 4; ++i) {
    args.sage_scales[i] =
        where(p.phase == Phase::kRagged && p.sage_blocks[i] != 0, at_tib(0x7c + i));
  }
  return args;
}

std::uint64_t RecordedCall::recorded(std::size_t offset, std::size_t bytes) const {
  const std::size_t first = recording["params_hex_offset"];
  const std::string digits =
      recording["params_hex"].get<std::string>().substr(2 * (offset - first), 2 * bytes);
  std::uint64_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    number = number << 8 | std::stoull(digits.substr(2 * i, 2), nullptr, 16);
  }
  return number;
}

std::vector<RecordedCall> read_recorded_calls(const std::string& release) {
  std::vector<RecordedCall> calls;
  for (const std::string& line : read_recordings("selection-" + release + ".jsonl.gz")) {
    RecordedCall call{json::parse(line), {}};
    if (!call.recording["ok"].get<bool>() || splits_head_groups(call.recording)) continue;
    DeviceProfile b200;
    b200.sm = 100;
    b200.num_sms = 148;
    ProblemLine problem;
    REQUIRE(read_problem(line, b200, problem));
    call.value = problem.value;
    if (call.value.device.sm == 100) calls.push_back(std::move(call));
  }
  return calls;
}

std::string main_difference(const RecordedCall& call, const FakeLaunch& launch) {
  if (launch.function != call.kernel()) return "kernel " + launch.function;
  if (std::string text = geometry_difference(call.recording, launch); !text.empty()) return text;
  for (const std::string& text : {different("cluster", launch.cluster, call.recording["cluster"]),
                                  different("cluster_sched_policy", launch.cluster_sched_policy,
                                            call.recording["cluster_sched_policy"])}) {
    if (!text.empty()) return text;
  }
  if (launch.params.size() != call.recording["params_size"].get<std::size_t>())
    return "params_size";
  for (const json& recorded : call.recording["tensor_maps"]) {
    const std::size_t offset = offsets_of(call).maps.at(recorded["slot"].get<std::string>());
    const std::string text =
        map_difference(recorded, read_fake_tensor_map(launch.params.data() + offset));
    if (!text.empty()) return text;
  }
  return scalars_difference(call, launch);
}

std::string reduction_difference(const RecordedCall& call, const FakeLaunch& launch) {
  const AttentionProblem& p = call.value.problem;
  const std::string expected = fmt::format("cubist_reduce_o_{}_sm100f", to_string(p.dtype_o));
  if (launch.function != expected) return "kernel " + launch.function;
  const std::string geometry = geometry_difference(call.recording["reduction_kernel"], launch);
  if (!geometry.empty()) return geometry;
  const auto params = params_of<CubistReduceParams>(launch);
  const Offsets& at = offsets_of(call);
  if (address_of(params.partial_o) != call.recorded(at.partial_o)) return "partial O";
  if (address_of(params.partial_stats) != call.recorded(at.partial_stats)) return "partial stats";
  if (address_of(params.softmax_stats) != call.recorded(at.softmax_stats)) return "softmax stats";
  if (address_of(params.o) != at_16_tib(4)) return "o";
  if (address_of(params.bmm1_scale_log2) != (p.bmm1_scale.on_device ? at_tib(0x78) : 0)) {
    return "bmm1 scale";
  }
  if (params.num_ctas_kv != call.recording["num_ctas_kv"]) return "num_ctas_kv";
  return params.tile_q == call.recording["tile_q"] ? "" : "tile_q";
}

std::string lse_difference(const RecordedCall& call, const FakeLaunch& launch) {
  const json& recorded = call.recording["lse_kernel"];
  if (launch.function != "cubist_lse_sm100f") return "kernel " + launch.function;
  const std::string geometry = geometry_difference(recorded, launch);
  if (!geometry.empty()) return geometry;
  const auto params = params_of<CubistLseParams>(launch);
  const json& scalars = recorded["scalars"];
  if (address_of(params.softmax_stats) != scalars.front()) return "softmax stats";
  if (address_of(params.lse) != scalars[1]) return "lse";
  if (scalars.size() == 6) {  // 0.6.8 has no strides
    if (params.stride_tokens != scalars[3] || params.stride_heads != scalars[4]) return "strides";
  }
  return params.num_entries == scalars.back() ? "" : "entries";
}

}  // namespace cubist::test
