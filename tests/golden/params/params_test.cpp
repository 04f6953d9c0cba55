#include "launcher/trtllm_gen/params.h"

#include <map>

#include "base/hex.h"
#include "launcher/trtllm_gen/prepare.h"
#include "launcher/trtllm_gen/tensor_maps.h"
#include "recording.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using namespace cubist::trtllm_gen;
using cubist::test::RecordedLaunch;

/// The made-up addresses of the recordings.
Addresses recorded_addresses(const AttentionProblem& p) {
  constexpr std::uint64_t kUnit = std::uint64_t{1} << 44;
  const auto sub = [](std::uint64_t n) { return n << 40; };
  Addresses a;
  a.q = kUnit;
  a.k = 2 * kUnit;
  a.v = 3 * kUnit;
  a.o = 4 * kUnit;
  a.o_sf = 5 * kUnit;
  a.workspace = 6 * kUnit;
  a.block_table = 7 * kUnit;
  a.seq_lens_kv = sub(0x71);
  a.cum_seq_lens_q = sub(0x72);
  a.cum_seq_lens_kv = sub(0x73);
  a.sinks = sub(0x74);
  a.lse = sub(0x75);
  a.k_sf = sub(0x76);
  a.v_sf = sub(0x77);
  a.bmm1_scale = sub(0x78);
  a.bmm2_scale = sub(0x79);
  a.sliding_pool = p.sparse_dynamic ? sub(0x7a) : 0;
  a.topk_lens = sub(0x7b);
  a.sage_scales = {sub(0x7c), sub(0x7d), sub(0x7e), sub(0x7f)};
  if (p.is_mla) {
    a.v = a.k;
  } else if (p.kv_combined) {
    const auto half = static_cast<std::uint64_t>(p.num_kv_heads) *
                      static_cast<std::uint64_t>(p.page_size) *
                      static_cast<std::uint64_t>(p.head_dim_qk) * dtype_bits(p.dtype_k) / 8;
    a.v = a.k + half;
  }
  return a;
}

std::string differing_bytes(const std::string& ours, const std::string& theirs, std::size_t base) {
  std::string text;
  for (std::size_t i = 0; i + 1 < ours.size() && i + 1 < theirs.size(); i += 8) {
    if (ours.compare(i, 8, theirs, i, 8) != 0) {
      text += fmt::format(" @{}: {} recorded {};", base + i / 2, ours.substr(i, 8),
                          theirs.substr(i, 8));
    }
  }
  return text;
}

template <class Params>
std::string params_difference(const RecordedLaunch& launch) {
  const LaunchPlan plan = launch.with_record();
  const AttentionProblem problem = prepare_problem(launch.problem);
  Params params;
  std::memset(static_cast<void*>(&params), 0, sizeof(params));
  const Status filled =
      fill_params(problem, plan, launch.num_sms, recorded_addresses(launch.problem), params);
  if (!filled) return filled.error().message();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&params);
  const std::string ours =
      to_hex({bytes + launch.params_offset, sizeof(params) - launch.params_offset});
  if (launch.params_size != sizeof(params)) return "size";
  return ours == launch.params_hex ? ""
                                   : differing_bytes(ours, launch.params_hex, launch.params_offset);
}

std::string describe(const TensorMapSpec& s) {
  return fmt::format(
      "{} {:x} type {} dims {},{},{},{},{} strides {},{},{},{} box {},{},{},{} swizzle {}", s.slot,
      s.address, static_cast<int>(s.type), s.dims[0], s.dims[1], s.dims[2], s.dims[3], s.dims[4],
      s.strides[0], s.strides[1], s.strides[2], s.strides[3], s.box[0], s.box[1], s.box[2],
      s.box[3], static_cast<int>(s.swizzle));
}

std::string maps_difference(const RecordedLaunch& launch) {
  const LaunchPlan plan = launch.with_record();
  const AttentionProblem problem = prepare_problem(launch.problem);
  const auto maps = describe_tensor_maps(problem, plan, recorded_addresses(launch.problem));
  if (!maps) return maps.error().message();
  if (maps->count != launch.tensor_maps.size()) return "number of descriptors";
  for (std::uint32_t i = 0; i < maps->count; ++i) {
    if (maps->maps[i] != launch.tensor_maps[i]) {
      return describe(maps->maps[i]) + " | recorded " + describe(launch.tensor_maps[i]);
    }
    if (const Status checked = check_tensor_map(maps->maps[i]); !checked) {
      return "refused by our rules: " + checked.error().message();
    }
  }
  return "";
}

template <class Params>
void compare_all(const char* file, HeuristicRevision revision, std::size_t expected) {
  const auto launches = cubist::test::read_recorded_launches(
      std::string(CUBIST_SOURCE_DIR "/tests/golden/select/") + file, revision);
  CHECK(launches.size() == expected);
  std::size_t wrong_params = 0;
  std::size_t wrong_maps = 0;
  for (const RecordedLaunch& launch : launches) {
    if (const std::string difference = params_difference<Params>(launch); !difference.empty()) {
      if (++wrong_params <= 10) UNSCOPED_INFO(launch.id << " params " << difference);
    }
    if (const std::string difference = maps_difference(launch); !difference.empty()) {
      if (++wrong_maps <= 10) UNSCOPED_INFO(launch.id << " maps " << difference);
    }
  }
  CHECK(wrong_params == 0);
  CHECK(wrong_maps == 0);
  WARN(launches.size() << " recorded launches compared: parameter bytes and descriptors");
}

}  // namespace

TEST_CASE("parameter blocks and descriptors equal those recorded of 0.6.13") {
  compare_all<Params1280>("selection-0.6.13.jsonl.gz", HeuristicRevision::kTrtllmGenFmha_0_6_13,
                          2093);
}

TEST_CASE("parameter blocks and descriptors equal those recorded of 0.6.8") {
  compare_all<Params1152>("selection-0.6.8.jsonl.gz", HeuristicRevision::kTrtllmGenFmha_0_6_8,
                          1242);
}
