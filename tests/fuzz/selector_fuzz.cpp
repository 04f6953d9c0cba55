#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "selector/explain.h"
#include "selector/select.h"
#include "unit/selector/kernels.h"

// Random problems, devices and thinned-out tables. The input's bytes fill the structs member by
// member, so any bit pattern of any field turns up; only flags are kept to true and false.

namespace cubist {
namespace {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  template <class T>
  T take() {
    T value{};
    const std::size_t count = std::min(size_, sizeof(T));
    std::memcpy(&value, data_, count);
    data_ += count;
    size_ -= count;
    return value;
  }
  bool flag() { return (take<std::uint8_t>() & 1) != 0; }
  /// For fields of which nearly every value is refused.
  bool rarely() { return take<std::uint8_t>() > 243; }
  /// Mostly a value that selection accepts, sometimes anything.
  std::int32_t number(std::int32_t most) {
    const auto kind = take<std::uint8_t>();
    const auto value = take<std::int32_t>();
    if (kind < 32) return value;
    return 1 + static_cast<std::int32_t>(static_cast<std::uint32_t>(value) %
                                         static_cast<std::uint32_t>(most));
  }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    const auto kind = take<std::uint8_t>();
    return kind < 16 ? static_cast<T>(take<std::uint8_t>())
                     : *(values.begin() + kind % values.size());
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

AttentionProblem problem_from(Bytes& bytes) {
  AttentionProblem p;
  p.phase = bytes.one_of({Phase::kDecode, Phase::kDecode, Phase::kContext, Phase::kRagged});
  p.dtype_q = bytes.one_of({Dtype::kBf16, Dtype::kBf16, Dtype::kBf16, Dtype::kE4m3});
  p.dtype_k = bytes.one_of({Dtype::kBf16, Dtype::kE4m3});
  p.dtype_v = bytes.flag() ? p.dtype_k : bytes.one_of({Dtype::kBf16, Dtype::kE4m3});
  p.dtype_o = bytes.one_of({Dtype::kBf16, Dtype::kBf16, Dtype::kBf16, Dtype::kE2m1});
  const auto shape = bytes.take<std::uint8_t>() % 8;
  p.head_dim_qk = shape == 0 ? 576 : shape == 1 ? 320 : shape == 2 ? 512 : shape == 3 ? 64 : 128;
  if (shape == 0) p.head_dim_vo = 512;
  if (shape == 1) p.head_dim_vo = 256;
  if (shape == 7) p.head_dim_vo = bytes.number(1024);
  p.num_kv_heads = bytes.number(16);
  const std::int32_t group = bytes.number(300);
  p.num_q_heads = group > 0 && group < 65536 && p.num_kv_heads > 0 && p.num_kv_heads < 65536
                      ? static_cast<std::int32_t>(std::int64_t{group} * p.num_kv_heads % 70000)
                      : group;
  p.batch = bytes.number(2000);
  p.max_q_len = bytes.number(5000);
  p.max_kv_len = bytes.number(2000000);
  if (bytes.rarely()) p.sum_seq_q = bytes.take<std::int64_t>();
  if (bytes.rarely()) p.sum_seq_kv = bytes.take<std::int64_t>();
  p.page_size = bytes.rarely() ? bytes.number(64) : 1 << (bytes.take<std::uint8_t>() % 31);
  if (bytes.flag()) p.page_size = bytes.flag() ? 32 : 64;
  if (bytes.flag()) p.max_pages_per_seq = bytes.number(100000);
  if (bytes.rarely()) p.num_pages = bytes.take<std::int64_t>();
  p.kv_layout = bytes.one_of({KvLayout::kHnd, KvLayout::kNhd});
  if (bytes.rarely()) p.q_stride_tokens = bytes.take<std::int64_t>();
  if (bytes.rarely()) p.kv_stride_tokens = bytes.take<std::int64_t>();
  if (bytes.flag()) p.window_left = bytes.number(4096);
  if (bytes.rarely()) p.chunk_size = bytes.flag() ? 1024 : bytes.number(4096);
  p.causal = bytes.flag();
  p.lse = bytes.flag();
  if (bytes.flag())
    p.sparse_mla_topk = bytes.number(16384) & ~3;  // mostly a multiple of 4, as they must be
  p.sparse_dynamic = p.sparse_mla_topk > 0 ? bytes.flag() : bytes.rarely();
  if (bytes.flag()) p.skip_softmax = bytes.rarely() ? bytes.take<float>() : 1.0F;
  if (bytes.rarely()) p.workspace_size = bytes.take<std::int64_t>();
  if (bytes.rarely()) p.bmm1_scale.value = bytes.take<double>();
  if (bytes.flag()) p.max_active_clusters = bytes.number(80);
  if (bytes.rarely()) p.sage_blocks = bytes.take<std::array<std::int32_t, 4>>();
  return p;
}

DeviceProfile device_from(Bytes& bytes) {
  DeviceProfile device;
  device.sm = bytes.flag() ? 100 : bytes.flag() ? 103 : bytes.take<std::uint16_t>();
  device.num_sms = bytes.number(200);
  if (bytes.flag()) device.max_active_clusters = bytes.take<std::array<std::int32_t, 17>>();
  if (bytes.rarely()) device.max_smem_optin = bytes.take<std::uint32_t>();
  return device;
}

struct Tables {
  Tables() {
    std::mt19937 random(1);
    for (const auto revision :
         {HeuristicRevision::kTrtllmGenFmha_0_6_13, HeuristicRevision::kTrtllmGenFmha_0_6_8}) {
      for (const double keep : {1.0, 0.5, 0.05}) {
        packs.push_back(test::thinned(test::made_up_release(revision), keep, random));
      }
    }
    for (const test::TestPack& pack : packs) {
      const selector::PackView view = pack.view();
      auto table = selector::KernelTable::build({&view, 1});
      FUZZ_CHECK(table.has_value());
      tables.push_back(std::move(*table));
    }
  }
  std::vector<test::TestPack> packs;
  std::vector<selector::KernelTable> tables;
};

void check_plan(const LaunchPlan& plan) {
  FUZZ_CHECK(plan.record != nullptr);
  for (const std::uint32_t extent : plan.grid) FUZZ_CHECK(extent >= 1);
  for (const std::uint32_t extent : plan.cluster) FUZZ_CHECK(extent >= 1);
  FUZZ_CHECK(plan.grid[0] % plan.cluster[0] == 0);
  FUZZ_CHECK(plan.grid[1] <= 65535 && plan.grid[2] <= 65535);
  FUZZ_CHECK(plan.num_ctas_q >= 1 && plan.num_ctas_kv >= 1);
  FUZZ_CHECK(plan.num_tokens_per_cta_q >= 1 && plan.num_heads_per_cta >= 1);
  FUZZ_CHECK(plan.reshape_factor_kv >= 1);
  if (plan.reduction.needed) FUZZ_CHECK(plan.reduction.ctas_per_tile >= 1);
}

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubist;
  static const Tables tables;
  Bytes bytes(data, size);
  const selector::KernelTable& table =
      tables.tables[bytes.take<std::uint8_t>() % tables.tables.size()];
  selector::SelectOptions options;
  options.strict = bytes.flag();
  options.rules.cost_model_always = bytes.flag();
  options.rules.enable_tile_kv64 = bytes.flag();
  const AttentionProblem problem = problem_from(bytes);
  const DeviceProfile device = device_from(bytes);
  const auto selection = selector::select(table, problem, device, options);
  if (selection) {
    FUZZ_CHECK(selection->num_plans >= 1 && selection->num_plans <= Selection::kMaxPlans);
    for (std::uint32_t i = 0; i < selection->num_plans; ++i) check_plan(selection->plans[i]);
    if (options.strict) FUZZ_CHECK(selection->best().fallback == FallbackReason::kNone);
  } else {
    FUZZ_CHECK(!selection.error().message().empty());
  }
  // Explaining walks the whole table; every sixteenth input is enough to keep it honest.
  if ((size & 15) == 0) {
    const auto explanation = selector::explain(table, problem, device, options);
    if (explanation) FUZZ_CHECK(explanation->selection.has_value() == selection.has_value());
  }
  return 0;
}
