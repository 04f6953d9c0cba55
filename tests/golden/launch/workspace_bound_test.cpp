// No problem of a range needs more workspace than its bound says: a million drawn ones.

#include <iostream>
#include <random>

#include "presets/library.h"
#include "runtime/runtime.h"
#include "runtime/selected.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"
#include "workingset/classes.h"

namespace {

using namespace cubist;

constexpr std::int32_t kMaxBatch = 512;
constexpr std::int32_t kMaxQLen = 16;
constexpr std::int32_t kMaxKvLen = 131072;

struct Types {
  Dtype q, kv, o;
};

/// Every model of the presets in every way it is used.
std::vector<workingset::ProblemClass> all_classes(const presets::Library& library) {
  std::vector<workingset::ProblemClass> classes;
  constexpr Types kTypes[] = {{Dtype::kBf16, Dtype::kBf16, Dtype::kBf16},
                              {Dtype::kBf16, Dtype::kE4m3, Dtype::kBf16},
                              {Dtype::kE4m3, Dtype::kE4m3, Dtype::kBf16},
                              {Dtype::kE4m3, Dtype::kE4m3, Dtype::kE2m1}};
  for (const presets::ModelPreset& model : library.models()) {
    for (const Types& types : kTypes) {
      // Batch-invariant calls have more partial results than others.
      for (const auto& [lse, batch_invariant] :
           {std::pair{false, false}, std::pair{true, false}, std::pair{false, true}}) {
        workingset::ClassOptions options;
        options.phases = {Phase::kDecode, Phase::kContext, Phase::kRagged};
        options.dtype_q = {types.q};
        options.dtype_kv = {types.kv};
        options.dtype_o = {types.o};
        options.page_size = {32, 64};
        options.rest.lse = lse;
        options.rest.batch_invariant = batch_invariant;
        options.rest.o_sf_scale = 1.0F;
        auto made = workingset::make_classes(model, options);
        if (!made) FAIL(made.error().message());
        classes.insert(classes.end(), made->begin(), made->end());
      }
    }
  }
  return classes;
}

class Drawer {
 public:
  /// Small values are as likely as large ones.
  std::int32_t draw(std::int32_t last) {
    std::uniform_real_distribution<double> exponent(0.0, std::log2(static_cast<double>(last) + 1));
    return std::clamp(static_cast<std::int32_t>(std::exp2(exponent(random_))), 1, last);
  }

 private:
  std::mt19937_64 random_{1};
};

struct Counts {
  std::uint64_t members = 0;
  std::uint64_t split = 0;  ///< launched with partial results
  double closest = 0.0;     ///< the largest need among them, as a share of the bound
};

AttentionProblem with_lengths(AttentionProblem problem, std::int32_t batch, std::int32_t q,
                              std::int32_t kv) {
  problem.batch = batch;
  problem.max_q_len = q;
  problem.max_kv_len = std::max(kv, q);
  return problem;
}

void draw_members(runtime::Runtime& runtime, const AttentionProblem& problem,
                  const DeviceProfile& device, int draws, Drawer& drawer, Counts& counts) {
  const std::int32_t max_q = problem.phase == Phase::kDecode ? kMaxQLen : 4096;
  const auto bound =
      runtime.workspace_bound(with_lengths(problem, kMaxBatch, max_q, kMaxKvLen), device);
  if (!bound) return;
  for (int i = 0; i < draws; ++i) {
    const AttentionProblem member =
        with_lengths(problem, drawer.draw(kMaxBatch), drawer.draw(max_q), drawer.draw(kMaxKvLen));
    const auto selected = runtime.select(member, device);
    if (!selected) continue;
    const auto need = (*selected)->workspace();
    REQUIRE(need);
    if (need->size > bound->size || need->zero_size > bound->zero_size) {
      FAIL("batch " << member.batch << " max_q_len " << member.max_q_len << " max_kv_len "
                    << member.max_kv_len << ": " << need->size << " bytes, bound " << bound->size
                    << " (" << (*selected)->selection().best().record->name << ")");
    }
    ++counts.members;
    counts.split += (*selected)->selection().best().num_ctas_kv > 1 ? 1 : 0;
    counts.closest =
        std::max(counts.closest, static_cast<double>(need->size) /
                                     static_cast<double>(std::max<std::uint64_t>(bound->size, 1)));
  }
}

Counts hold_bound(const std::string& manifest, const std::vector<const char*>& devices,
                  std::uint64_t wanted) {
  const test::Scratch store;
  const test::Environment manifests(
      test::Environment::Values{{"CUBIST_MANIFESTS", CUBIST_SOURCE_DIR "/manifests"}});
  runtime::RuntimeOptions options;
  options.manifests = {manifest};
  options.store_dir = store.path();
  const auto runtime = runtime::Runtime::open(options).value();
  const auto library = presets::Library::load(CUBIST_SOURCE_DIR "/data/presets", {}).value();
  const auto classes = all_classes(library);
  Drawer drawer;
  Counts counts;
  while (counts.members < wanted) {
    const std::uint64_t before = counts.members;
    for (const workingset::ProblemClass& problem_class : classes) {
      for (const char* device : devices) {
        draw_members(*runtime, problem_class.problem, library.find_device(device)->profile, 200,
                     drawer, counts);
      }
    }
    REQUIRE(counts.members > before);
  }
  std::cout << manifest << ": " << counts.members << " members of " << classes.size()
            << " classes, " << counts.split << " of them split, none above its bound; the nearest "
            << "needs " << counts.closest << " of it\n";
  return counts;
}

}  // namespace

TEST_CASE("no member of a range needs more than the range's bound") {
  std::uint64_t members = 0;
  members += hold_bound("flashinfer-0.6.13", {"b200", "gb300"}, 500'000).members;
  members += hold_bound("flashinfer-0.6.8", {"b200", "gb300"}, 250'000).members;
  members += hold_bound("cubist-decode", {"h200", "h100"}, 250'000).members;
  CHECK(members >= 1'000'000);
}
