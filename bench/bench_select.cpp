// Selection beside a hash-map look-up over the same kernels, in one run:
//   bench_select MANIFEST        e.g. manifests/flashinfer-0.6.13.json
// Medians over batches, ns a call. The published runtime's own figures (one core of a shared 2-core
// Xeon, minimum / median of its selection loop) are printed beside ours for orientation: another
// run, perhaps another machine.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "manifest/parse.h"
#include "selector/kernel_key.h"
#include "selector/memo.h"
#include "selector/occupancy.h"
#include "selector/select.h"

namespace cubist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatches = 401;
constexpr int kCallsPerBatch = 500;

struct Spread {
  double minimum = 0;
  double median = 0;
};

template <class Call>
Spread measure(Call call) {
  std::vector<double> batches;
  for (int b = 0; b < kBatches; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < kCallsPerBatch; ++i) {
      asm volatile("" ::: "memory");  // each call starts from memory, as a caller's would
      call();
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    batches.push_back(took.count() / kCallsPerBatch);
  }
  std::sort(batches.begin(), batches.end());
  return {batches.front(), batches[batches.size() / 2]};
}

struct Case {
  const char* name;
  AttentionProblem problem;
  double published_minimum;
  double published_median;
};

AttentionProblem gqa(std::int32_t q_heads, std::int32_t head_dim, Dtype in, std::int32_t batch,
                     std::int32_t q_len, std::int32_t kv_len) {
  AttentionProblem p;
  p.num_q_heads = q_heads;
  p.head_dim_qk = head_dim;
  p.dtype_q = p.dtype_k = p.dtype_v = in;
  p.batch = batch;
  p.max_q_len = q_len;
  p.max_kv_len = kv_len;
  p.page_size = 32;
  return p;
}

std::array<Case, 5> cases() {
  AttentionProblem mla = gqa(128, 576, Dtype::kE4m3, 8, 1, 8192);
  mla.num_kv_heads = 1;
  mla.head_dim_vo = 512;
  mla.page_size = 64;
  mla.is_mla = true;
  AttentionProblem context = gqa(64, 128, Dtype::kE4m3, 8, 4096, 8192);
  context.phase = Phase::kContext;
  context.dtype_o = Dtype::kE2m1;
  context.page_size = 64;
  return {{{"1 decode 96/8 d128 bf16", gqa(96, 128, Dtype::kBf16, 8, 1, 8192), 1272, 2569},
           {"2 decode 96/8 d128 e4m3 s_qo 4", gqa(96, 128, Dtype::kE4m3, 2, 4, 32768), 1730, 3143},
           {"3 decode 64/8 d64 bf16", gqa(64, 64, Dtype::kBf16, 64, 1, 1024), 1315, 1541},
           {"4 MLA 128 heads e4m3", mla, 670, 965},
           {"5 context e4m3 to e2m1", context, 648, 726}}};
}

/// A key of all that a look-up compares, for the hash map beside us.
struct MapKey {
  std::uint64_t types = 0;
  std::uint64_t shape = 0;
  std::uint64_t tile = 0;
  std::uint64_t kind = 0;
  bool operator==(const MapKey&) const = default;
};
struct MapHash {
  std::size_t operator()(const MapKey& key) const {
    return selector::mix(selector::mix(key.types, key.shape), selector::mix(key.tile, key.kind));
  }
};
MapKey key_of(const KernelTraits& traits) {
  return {selector::type_word(traits), selector::shape_word(traits), selector::tile_word(traits),
          std::uint64_t{selector::kind_word(traits)} << 32 | std::uint64_t{traits.arch.sm} << 8 |
              static_cast<std::uint64_t>(traits.arch.kind)};
}

void time_build(const char* what, const std::vector<selector::PackView>& views,
                std::size_t kernels) {
  std::vector<double> runs;
  std::size_t bytes = 0;
  for (int i = 0; i < 21; ++i) {
    const auto start = Clock::now();
    const auto table = selector::KernelTable::build(views);
    runs.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    bytes = table->index_bytes();
  }
  std::sort(runs.begin(), runs.end());
  std::printf("%-28s %7zu kernels: %7.3f ms median (%7.3f minimum), %5.2f MB\n", what, kernels,
              runs[runs.size() / 2], runs.front(), static_cast<double>(bytes) / 1e6);
}

/// The pack again and again under other head sizes, until there are `count` kernels.
std::vector<KernelRecord> multiplied(const Pack& pack, std::size_t count) {
  std::vector<KernelRecord> kernels;
  kernels.reserve(count);
  for (std::uint16_t copy = 0; kernels.size() < count; ++copy) {
    for (const KernelRecord& record : pack.kernels) {
      if (kernels.size() == count) break;
      kernels.push_back(record);
      KernelTraits& traits = kernels.back().traits;
      traits.head_dim_qk = static_cast<std::uint16_t>(traits.head_dim_qk + copy * 1024);
    }
  }
  return kernels;
}

using KernelMap = std::unordered_map<MapKey, const KernelRecord*, MapHash>;

struct Rig {
  const selector::KernelTable& table;
  const selector::KernelTable& big_table;
  const KernelMap& map;
  const DeviceProfile& device;
  selector::SelectionMemo& memo;
};

/// One line of the table; false if the problem has no kernel.
bool time_case(const Case& entry, const Rig& rig) {
  const selector::SelectOptions options;
  const auto first = selector::select(rig.table, entry.problem, rig.device, options);
  if (!first) {
    std::fprintf(stderr, "%s: %s\n", entry.name, first.error().message().c_str());
    return false;
  }
  std::uint64_t sink = 0;
  Selection selection;
  const auto time_select = [&](const selector::KernelTable& table) {
    return measure([&] {
      sink +=
          selector::select_into(table, entry.problem, rig.device, options, selection).has_value();
    });
  };
  const Spread select = time_select(rig.table);
  const Spread big = time_select(rig.big_table);
  Status status;
  const Spread memo = measure(
      [&] { sink += rig.memo.find(entry.problem, rig.device, options, status)->num_plans; });
  const KernelTraits& traits = first->best().record->traits;
  const Spread map = measure([&] { sink += rig.map.find(key_of(traits))->second->traits.tile_q; });
  std::printf("%-32s %7.0f (%5.0f) %7.0f (%5.0f) %4.0f (%3.0f) %9.0f (%5.0f)   %5.0f (%5.0f)\n",
              entry.name, select.median, select.minimum, big.median, big.minimum, memo.median,
              memo.minimum, map.median, map.minimum, entry.published_median,
              entry.published_minimum);
  return sink != 0;
}

int run(const char* path) {
  const auto manifest = load_manifest(path);
  if (!manifest || manifest->packs.empty()) {
    std::fprintf(stderr, "%s\n", manifest ? "no packs" : manifest.error().message().c_str());
    return 1;
  }
  std::vector<selector::PackView> views;
  std::size_t kernels = 0;
  for (const Pack& pack : manifest->packs) {
    views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
    kernels += pack.kernels.size();
  }
  time_build("index", views, kernels);
  const std::vector<KernelRecord> many = multiplied(manifest->packs[0], 140000);
  const std::vector<selector::PackView> big_views = {
      {views[0].name, views[0].family, views[0].revision, views[0].param_layout, many}};
  time_build("index, made larger", big_views, many.size());

  const auto table = selector::KernelTable::build(views);
  const auto big_table = selector::KernelTable::build(big_views);
  KernelMap map;
  for (const Pack& pack : manifest->packs) {
    for (const KernelRecord& record : pack.kernels) map.emplace(key_of(record.traits), &record);
  }
  DeviceProfile device;
  device.sm = 100;
  device.num_sms = 148;
  device.max_active_clusters =
      selector::clusters_from_gpcs(selector::modelled_gpcs(device.num_sms));
  selector::SelectionMemo memo(*table);
  std::printf("%-32s %15s %15s %10s %17s   %s\n", "ns a call, median (minimum)", "select",
              "of 140,000", "memo", "unordered_map", "published loop");
  for (const Case& entry : cases()) {
    if (!time_case(entry, Rig{*table, *big_table, map, device, memo})) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace cubist

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_select MANIFEST\n");
    return 2;
  }
  return cubist::run(argv[1]);
}
