#include <algorithm>
#include <random>

#include "kernels.h"
#include "model/decode_params.h"
#include "selector/decode_costs.h"
#include "selector/explain.h"
#include "selector/request.h"
#include "selector/select.h"
#include "support/catch.h"

namespace cubist {
namespace {

test::TestPack own_family() {
  test::TestPack pack;
  pack.family = KernelFamily::kCubistDecode;
  pack.revision = HeuristicRevision::kCubistDecode_1;
  pack.param_layout = ParamLayout::kCubistDecode1;
  for (const int head_dim : {64, 128}) {
    for (const Dtype kv : {Dtype::kBf16, Dtype::kE4m3}) {
      for (const int tile_q : {16, 32, 64, 128}) {
        KernelRecord record;
        KernelTraits& t = record.traits;
        t.dtype_q = t.dtype_o = Dtype::kBf16;
        t.dtype_k = t.dtype_v = kv;
        t.arch = {90, SmArch::Kind::kSpecific};
        t.head_dim_qk = t.head_dim_vo = t.head_dim_per_cta_v = static_cast<std::uint16_t>(head_dim);
        t.tile_q = t.step_q = static_cast<std::uint16_t>(tile_q);
        t.tile_kv = t.step_kv = 64;
        t.threads = 128;
        t.smem = 70000;
        t.dynamic_page = true;
        t.mask_type = MaskType::kCausal;
        t.kernel_type = KernelType::kKeepsMmaAbGeneration;
        t.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory;
        t.groups_heads_q = t.groups_tokens_heads_q = true;
        record.name = "own" + std::to_string(pack.kernels.size());
        pack.kernels.push_back(record);
      }
    }
  }
  return pack;
}

DeviceProfile h200() {
  DeviceProfile device;
  device.sm = 90;
  device.num_sms = 132;
  return device;
}

AttentionProblem gpt_oss() {
  AttentionProblem p;
  p.num_q_heads = 64;
  p.head_dim_qk = 64;
  p.batch = 32;
  p.max_q_len = 4;
  p.max_kv_len = 8192;
  p.page_size = 32;
  return p;
}

}  // namespace

namespace {

test::TestPack mla_family() {
  test::TestPack pack = own_family();
  KernelRecord record = pack.kernels.front();
  KernelTraits& t = record.traits;
  t.head_dim_qk = 576;
  t.head_dim_vo = t.head_dim_per_cta_v = 512;
  t.tile_q = t.step_q = 64;
  t.scheduler = TileScheduler::kPersistent;
  t.reuse_smem_k_for_v = true;
  record.name = "own_mla";
  pack.kernels.push_back(record);
  t.dtype_k = t.dtype_v = Dtype::kE4m3;
  record.name = "own_mla_e4m3";
  pack.kernels.push_back(record);
  return pack;
}

AttentionProblem deepseek(std::int32_t batch, std::int32_t heads, std::int32_t max_q_len) {
  AttentionProblem p;
  p.head_dim_qk = 576;
  p.head_dim_vo = 512;
  p.num_q_heads = heads;
  p.num_kv_heads = 1;
  p.is_mla = true;
  p.batch = batch;
  p.max_q_len = max_q_len;
  p.max_kv_len = 8192;
  p.page_size = 64;
  return p;
}

}  // namespace

TEST_CASE(
    "MLA heads are split over CTAs of 64 rows, and sequences over groups that end with them") {
  const auto pack = mla_family();
  const auto even = selector::select(pack.table(), deepseek(64, 128, 1), h200());
  REQUIRE(even.has_value());
  CHECK(even->best().record->name == "own_mla");
  CHECK(even->best().num_heads_per_cta == 64);
  CHECK(even->best().grid ==
        std::array<std::uint32_t, 3>{2, 64, 1});  // 66 would fit, and end inside sequences
  const auto few = selector::select(pack.table(), deepseek(16, 128, 1), h200());
  REQUIRE(few.has_value());
  CHECK(few->best().grid == std::array<std::uint32_t, 3>{2, 64, 1});
  const auto tokens = selector::select(pack.table(), deepseek(128, 16, 4), h200());
  REQUIRE(tokens.has_value());
  CHECK(tokens->best().num_tokens_per_cta_q == 4);
  CHECK(tokens->best().grid == std::array<std::uint32_t, 3>{1, 128, 1});
}

TEST_CASE("an e4m3 cache of MLA takes the kernel for it, split as one of bf16") {
  const auto pack = mla_family();
  AttentionProblem problem = deepseek(64, 128, 4);
  problem.dtype_k = problem.dtype_v = Dtype::kE4m3;
  const auto narrow = selector::select(pack.table(), problem, h200());
  REQUIRE(narrow.has_value());
  CHECK(narrow->best().record->name == "own_mla_e4m3");
  const auto wide = selector::select(pack.table(), deepseek(64, 128, 4), h200());
  REQUIRE(wide.has_value());
  CHECK(wide->best().record->name == "own_mla");
  CHECK(narrow->best().grid == wide->best().grid);
}

TEST_CASE("unequal head sizes without is_mla are refused by name") {
  AttentionProblem problem = deepseek(64, 128, 1);
  problem.is_mla = false;
  const auto selection = selector::select(mla_family().table(), problem, h200());
  REQUIRE_FALSE(selection.has_value());
  CHECK_THAT(selection.error().message(), Catch::Matchers::Contains("is_mla"));
}

TEST_CASE("our own family takes the smallest tile that holds all rows") {
  const auto pack = own_family();
  const auto selection = selector::select(pack.table(), gpt_oss(), h200());
  REQUIRE(selection.has_value());
  const LaunchPlan& plan = selection->best();
  CHECK(plan.record->traits.tile_q == 32);
  CHECK(plan.grid == std::array<std::uint32_t, 3>{1, 8, 32});
  CHECK(plan.block[0] == 128);
  CHECK(plan.num_tokens_per_cta_q == 4);
  CHECK(plan.num_heads_per_cta == 8);
  CHECK(plan.family == KernelFamily::kCubistDecode);
}

TEST_CASE("a few sequences are split over the SMs, 256 keys to a CTA at least, 64 CTAs at most") {
  const auto pack = own_family();
  const auto table = pack.table();
  AttentionProblem problem = gpt_oss();
  problem.batch = 1;
  CHECK(selector::select(table, problem, h200())->best().num_ctas_kv == 16);  // 132 / 8
  problem.max_kv_len = 1000;
  CHECK(selector::select(table, problem, h200())->best().num_ctas_kv == 4);
  problem.max_kv_len = 1000000;
  problem.num_q_heads = 8;
  problem.num_kv_heads = 1;
  CHECK(selector::select(table, problem, h200())->best().num_ctas_kv == 64);
}

TEST_CASE("every head ratio and token count gets a grid that covers it") {
  const auto pack = own_family();
  const auto table = pack.table();
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    AttentionProblem problem = gpt_oss();
    problem.num_kv_heads = static_cast<std::int32_t>(1 + random() % 16);
    const auto group = static_cast<std::int32_t>(1 + random() % 300);
    problem.num_q_heads = problem.num_kv_heads * group;
    problem.max_q_len = static_cast<std::int32_t>(1 + random() % 16);
    problem.batch = static_cast<std::int32_t>(1 + random() % 300);
    problem.max_kv_len = static_cast<std::int32_t>(1 + random() % 100000);
    problem.page_size = 1 << random() % 8;
    const auto selection = selector::select(table, problem, h200());
    REQUIRE(selection.has_value());
    const LaunchPlan& plan = selection->best();
    const auto tile_q = static_cast<std::int32_t>(plan.record->traits.tile_q);
    REQUIRE(plan.num_heads_per_cta * plan.num_tokens_per_cta_q <= tile_q);
    REQUIRE(plan.num_ctas_q * plan.num_tokens_per_cta_q >= problem.max_q_len);
    const auto head_ctas = static_cast<std::int32_t>(plan.grid[1]) / problem.num_kv_heads;
    REQUIRE(head_ctas * plan.num_heads_per_cta >= group);
    REQUIRE(plan.num_ctas_kv >= 1);
    REQUIRE(plan.num_ctas_kv <= 64);
    REQUIRE(plan.grid[0] == static_cast<std::uint32_t>(plan.num_ctas_q * plan.num_ctas_kv));
    REQUIRE((tile_q == 16 || tile_q == 128 || group * problem.max_q_len > tile_q / 2));
  }
}

/// The family with persistent kernels beside, as for sm_90a.
test::TestPack with_persistent() {
  test::TestPack pack = own_family();
  for (const int head_dim : {64, 128}) {
    for (const int tile_q : {64, 128}) {
      KernelRecord record = pack.kernels.front();
      KernelTraits& t = record.traits;
      t.head_dim_qk = t.head_dim_vo = t.head_dim_per_cta_v = static_cast<std::uint16_t>(head_dim);
      t.tile_q = t.step_q = static_cast<std::uint16_t>(tile_q);
      t.scheduler = TileScheduler::kPersistent;
      t.threads = 384;
      t.smem = 200000;
      record.name = "persistent" + std::to_string(pack.kernels.size());
      pack.kernels.push_back(record);
    }
  }
  return pack;
}

TEST_CASE("long sequences go to a persistent kernel, whose groups fill the SMs once") {
  const auto pack = with_persistent();
  const auto table = pack.table();
  AttentionProblem problem = gpt_oss();
  const LaunchPlan plan = selector::select(table, problem, h200())->best();
  CHECK(plan.record->traits.scheduler == TileScheduler::kPersistent);
  CHECK(plan.record->traits.tile_q == 64);
  CHECK(plan.grid == std::array<std::uint32_t, 3>{8, 16, 1});
  CHECK(plan.num_ctas_kv == 16);
  CHECK(plan.batch == 32);
  problem.max_kv_len = 100;
  CHECK(selector::select(table, problem, h200())->best().record->traits.scheduler ==
        TileScheduler::kStatic);
}

/// Topic and text of the own family's steps, a line each.
std::string steps_of(const test::TestPack& pack, const AttentionProblem& problem) {
  const auto table = pack.table();
  const auto explanation = selector::explain(table, problem, h200());
  std::string text;
  if (!explanation) return text;
  for (const auto& step : explanation->packs.at(0).steps) {
    text += step.topic + " " + step.text + "\n";
  }
  return text;
}

TEST_CASE("a persistent kernel's explanation tells of its own tiles, groups and sequences") {
  const std::string text = steps_of(with_persistent(), gpt_oss());
  CAPTURE(text);
  const auto at = [&](std::string_view words) { return text.find(words); };
  CHECK(at("scheduler static, tile_q 32, num_ctas_kv 1") != std::string::npos);
  CHECK(at("scheduler persistent, tile_q 64, groups of CTAs 16") != std::string::npos);
  CHECK(at("32 rows: tile_q 64, of the persistent kernels the one of least modelled time") !=
        std::string::npos);
  CHECK(at("ctas 8 KV heads x 16 groups of CTAs; the groups share the keys of all 32 sequences") !=
        std::string::npos);
  CHECK(at("scheduler persistent") < at("tile_q 8 heads"));  // the tile follows from it
  CHECK(at("1 sequences") == std::string::npos);

  AttentionProblem many_heads = gpt_oss();
  many_heads.num_q_heads = 8 * 300;
  many_heads.max_kv_len = 100000;
  const std::string largest = steps_of(with_persistent(), many_heads);
  CAPTURE(largest);
  CHECK(largest.find("1200 rows: tile_q 128, of the persistent kernels") != std::string::npos);
  CHECK(largest.find("8 KV heads x 3 parts of their query heads x 4 parts of the query tokens x") !=
        std::string::npos);
}

TEST_CASE("a static kernel's explanation counts KV heads and sequences apart") {
  const std::string text = steps_of(own_family(), gpt_oss());
  CAPTURE(text);
  CHECK(text.find("tile_q 32, the smallest of the static kernels that holds them all") !=
        std::string::npos);
  CHECK(text.find("ctas 8 KV heads x 32 sequences, each one's KV split over 1\n") !=
        std::string::npos);
}

TEST_CASE("the choice among static and persistent kernels does not depend on their order") {
  test::TestPack pack = with_persistent();
  std::mt19937 random(17);
  std::vector<AttentionProblem> problems;
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) {
    AttentionProblem problem = gpt_oss();
    problem.num_q_heads = static_cast<std::int32_t>(8 * (1 + random() % 40));
    problem.max_q_len = static_cast<std::int32_t>(1 + random() % 8);
    problem.batch = static_cast<std::int32_t>(1 + random() % 64);
    problem.max_kv_len = static_cast<std::int32_t>(1 + random() % 20000);
    problems.push_back(problem);
    names.push_back(selector::select(pack.table(), problem, h200())->best().record->name);
  }
  for (int shuffle = 0; shuffle < 50; ++shuffle) {
    std::shuffle(pack.kernels.begin(), pack.kernels.end(), random);
    const auto table = pack.table();
    for (std::size_t i = 0; i < problems.size(); ++i) {
      REQUIRE(selector::select(table, problems[i], h200())->best().record->name == names[i]);
    }
  }
}

TEST_CASE("an output type that is read at run time is served by the static kernels that read it") {
  test::TestPack pack = with_persistent();
  for (KernelRecord& record : pack.kernels) {
    record.traits.dynamic_dtype_o = record.traits.scheduler == TileScheduler::kStatic;
  }
  const auto table = pack.table();
  AttentionProblem problem = gpt_oss();
  const std::string own = selector::select(table, problem, h200())->best().record->name;
  for (const Dtype dtype_o : {Dtype::kFp16, Dtype::kE4m3, Dtype::kE2m1}) {
    problem.dtype_o = dtype_o;
    const auto selection = selector::select(table, problem, h200());
    REQUIRE(selection.has_value());
    CHECK(selection->best().record->traits.scheduler == TileScheduler::kStatic);
    CHECK(selection->best().record->traits.tile_q == 32);
  }
  problem.dtype_o = Dtype::kInt8;
  CHECK_FALSE(selector::select(table, problem, h200()).has_value());
  // Nothing else has changed: the same as of kernels of one output type.
  problem.dtype_o = Dtype::kBf16;
  CHECK(own == selector::select(with_persistent().table(), problem, h200())->best().record->name);
}

/// CTAs that a static kernel gives a sequence: kernels/decode/README.md.
std::int64_t own_split(const LaunchPlan& plan, const AttentionProblem& problem,
                       std::int32_t kv_len) {
  const std::int64_t end = kv_len;
  std::int64_t begin = 0;
  if (problem.window_left >= 0) {
    begin = std::max<std::int64_t>(0, end - plan.num_tokens_per_cta_q - problem.window_left);
  }
  const std::int64_t tiles = (end + 63) / 64 - begin / 64;
  const std::int64_t wanted =
      (tiles + kCubistDecodeInvariantTilesPerCta - 1) / kCubistDecodeInvariantTilesPerCta;
  return std::max<std::int64_t>(1, std::min<std::int64_t>(plan.num_ctas_kv, wanted));
}

TEST_CASE(
    "batch_invariant: kernel and a sequence's split hang on nothing of the batch or the SMs") {
  const auto pack = with_persistent();
  const auto table = pack.table();
  std::mt19937 random(23);
  int split = 0;
  for (int i = 0; i < 2000; ++i) {
    AttentionProblem alone = gpt_oss();
    alone.batch_invariant = true;
    alone.num_kv_heads = static_cast<std::int32_t>(1 + random() % 16);
    alone.num_q_heads = alone.num_kv_heads * static_cast<std::int32_t>(1 + random() % 40);
    alone.max_q_len = static_cast<std::int32_t>(1 + random() % 8);
    alone.varlen_q = random() % 3 == 0;
    alone.window_left = random() % 3 == 0 ? static_cast<std::int32_t>(random() % 5000) : -1;
    alone.batch = 1;
    const auto kv_len = static_cast<std::int32_t>(1 + random() % (random() % 2 ? 3000 : 200000));
    alone.max_kv_len = kv_len;
    AttentionProblem among = alone;
    among.batch = static_cast<std::int32_t>(1 + random() % 300);
    among.max_kv_len = kv_len + static_cast<std::int32_t>(random() % 200000);
    if (among.varlen_q) among.max_q_len += static_cast<std::int32_t>(random() % 8);
    DeviceProfile other = h200();
    other.num_sms = static_cast<std::int32_t>(1 + random() % 300);
    const auto first = selector::select(table, alone, h200());
    const auto second = selector::select(table, among, other);
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    const LaunchPlan& a = first->best();
    const LaunchPlan& b = second->best();
    REQUIRE(a.record == b.record);
    REQUIRE(a.record->traits.scheduler == TileScheduler::kStatic);
    REQUIRE(a.num_tokens_per_cta_q == b.num_tokens_per_cta_q);
    REQUIRE(a.num_heads_per_cta == b.num_heads_per_cta);
    REQUIRE(own_split(a, alone, kv_len) == own_split(b, among, kv_len));
    if (own_split(a, alone, kv_len) > 1) ++split;
  }
  CHECK(split > 500);
}

TEST_CASE("batch_invariant is explained, and refused by name where no kernel has it") {
  AttentionProblem problem = gpt_oss();
  problem.batch_invariant = true;
  const std::string text = steps_of(with_persistent(), problem);
  CAPTURE(text);
  CHECK(text.find("batch_invariant static kernels alone; a sequence gets one CTA for 1024 of its "
                  "own keys, up to 8") != std::string::npos);
  CHECK(text.find("scheduler persistent") == std::string::npos);
  problem.varlen_q = true;
  CHECK(steps_of(with_persistent(), problem).find("64 rows whatever the longest query is") !=
        std::string::npos);
  AttentionProblem mla = deepseek(64, 128, 1);
  mla.batch_invariant = true;
  const auto refused = selector::select(mla_family().table(), mla, h200());
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message(), Catch::Matchers::Contains("MLA with batch_invariant"));
  test::TestPack persistent = with_persistent();
  std::erase_if(persistent.kernels, [](const KernelRecord& record) {
    return record.traits.scheduler == TileScheduler::kStatic;
  });
  const auto explanation = selector::explain(persistent.table(), problem, h200());
  REQUIRE(explanation.has_value());
  REQUIRE_FALSE(explanation->packs.at(0).nearest.empty());
  CHECK(explanation->packs.at(0).nearest.front().differences.front().field == "batch_invariant");
}

TEST_CASE("pages too small for a copy's box leave the static kernels") {
  const auto pack = with_persistent();
  AttentionProblem problem = gpt_oss();
  problem.page_size = 8;
  CHECK(selector::select(pack.table(), problem, h200())->best().record->traits.scheduler ==
        TileScheduler::kStatic);
}

TEST_CASE("no more groups of CTAs than there are tiles of keys") {
  const auto pack = with_persistent();
  AttentionProblem problem = gpt_oss();
  problem.batch = 1;
  problem.max_kv_len = 130;
  problem.max_q_len = 8;
  selector::Request request;
  REQUIRE(selector::prepare_request(problem, h200(), request).has_value());
  KernelTraits traits = pack.kernels.back().traits;
  REQUIRE(traits.scheduler == TileScheduler::kPersistent);
  const auto& model = selector::shipped_decode_model();
  CHECK(selector::best_split(model, request, traits, 8).num_ctas_kv == 3);
  CHECK(selector::best_split(model, request, traits, 100).num_ctas_kv == 1);
}

TEST_CASE("what our own kernels do not do is refused with its field") {
  const auto pack = own_family();
  const auto table = pack.table();
  struct Case {
    const char* phrase;
    void (*change)(AttentionProblem&);
  };
  const std::vector<Case> cases = {
      {"decode only", [](AttentionProblem& p) { p.phase = Phase::kContext; }},
      {"page_size is 256", [](AttentionProblem& p) { p.page_size = 256; }},
      {"chunk_size", [](AttentionProblem& p) { p.chunk_size = 1024; }},
      {"skip_softmax", [](AttentionProblem& p) { p.skip_softmax = 5.0F; }},
      {"causal must be true", [](AttentionProblem& p) { p.causal = false; }},
      {"top-k", [](AttentionProblem& p) { p.sparse_mla_topk = 64; }},
      {"head_dim_qk 256", [](AttentionProblem& p) { p.head_dim_qk = 256; }},
      {"dtype_o e2m1", [](AttentionProblem& p) { p.dtype_o = Dtype::kE2m1; }},
  };
  for (const Case& entry : cases) {
    AttentionProblem problem = gpt_oss();
    entry.change(problem);
    const auto selection = selector::select(table, problem, h200());
    INFO(entry.phrase);
    REQUIRE_FALSE(selection.has_value());
    CHECK(selection.error().message().find(entry.phrase) != std::string::npos);
  }
  AttentionProblem dense = gpt_oss();
  dense.causal = false;
  dense.max_q_len = 1;
  CHECK(selector::select(table, dense, h200()).has_value());
}

namespace {

/// What a launch has, worked out in 64 bits from the problem and the plan's own tile.
void check_ctas(const AttentionProblem& problem, const LaunchPlan& plan) {
  const std::int64_t tokens = plan.num_tokens_per_cta_q;
  const std::int64_t q_ctas = (problem.max_q_len + tokens - 1) / tokens;
  const std::int64_t heads = plan.num_heads_per_cta;
  const std::int64_t head_ctas = (problem.num_q_heads / problem.num_kv_heads + heads - 1) / heads;
  const std::int64_t columns = q_ctas * problem.num_kv_heads * head_ctas;
  REQUIRE(plan.num_ctas_q == q_ctas);
  if (plan.record->traits.scheduler == TileScheduler::kPersistent) {
    REQUIRE(plan.grid[0] == columns);
    REQUIRE(plan.grid[1] == static_cast<std::uint32_t>(plan.num_ctas_kv));
  } else {
    REQUIRE(plan.grid[0] == q_ctas * plan.num_ctas_kv);
    REQUIRE(plan.grid[1] * q_ctas == columns);
    REQUIRE(plan.grid[2] == static_cast<std::uint32_t>(problem.batch));
  }
  REQUIRE(plan.num_ctas_kv >= 1);
  REQUIRE(plan.grid[0] <= 2147483647U);
  REQUIRE(std::max(plan.grid[1], plan.grid[2]) <= 65535U);
}

}  // namespace

TEST_CASE("CTAs are counted in 64 bits: no problem overflows, and no plan is beyond a grid") {
  const std::vector<std::int32_t> lengths = {
      1, 2, 100, 65536, 1 << 20, 1 << 28, 1 << 29, 1 << 30, 3 << 28, 0x7fffffff - 1, 0x7fffffff};
  const std::vector<std::pair<std::int32_t, std::int32_t>> heads = {
      {64, 8}, {8, 1}, {65535, 65535}, {65535, 1}, {32768, 32768}, {32768, 2048}, {1, 1}};
  for (const test::TestPack& pack : {own_family(), with_persistent(), mla_family()}) {
    const auto table = pack.table();
    std::size_t served = 0;
    std::size_t refused = 0;
    for (const auto& [q_heads, kv_heads] : heads) {
      for (const std::int32_t max_q_len : lengths) {
        for (const std::int32_t max_kv_len : lengths) {
          for (const bool invariant : {false, true}) {
            AttentionProblem problem = gpt_oss();
            if (kv_heads == 1 && pack.kernels.size() == mla_family().kernels.size() &&
                pack.kernels.back().traits.reuse_smem_k_for_v) {
              problem = deepseek(1, 16, 1);
            }
            problem.batch = max_q_len < 1 << 20 && max_kv_len <= 1 << 20 ? 1000 : 1;
            problem.num_q_heads = q_heads;
            problem.num_kv_heads = kv_heads;
            problem.max_q_len = max_q_len;
            problem.max_kv_len = max_kv_len;
            problem.page_size = 64;
            problem.batch_invariant = invariant;
            CAPTURE(q_heads, kv_heads, max_q_len, max_kv_len, invariant, problem.is_mla);
            const auto selection = selector::select(table, problem, h200());
            if (selection) {
              ++served;
              check_ctas(problem, selection->best());
            } else {
              ++refused;
              REQUIRE(selection.error().code() == StatusCode::kUnsupported);
              if (invariant && problem.is_mla) continue;
              CHECK_THAT(selection.error().message(),
                         Catch::Matchers::Contains("max_q_len is " + std::to_string(max_q_len)) &&
                             Catch::Matchers::Contains("none holds more than 2147483647"));
            }
          }
        }
      }
    }
    CHECK(served > 300);
    CHECK(refused > 5);
  }
}

TEST_CASE("a launch beyond a grid is explained by the kernels' grids") {
  const auto pack = own_family();
  AttentionProblem problem = gpt_oss();
  problem.num_kv_heads = 1;
  problem.batch = 1;
  problem.batch_invariant = true;
  problem.max_q_len = 0x7fffffff;
  problem.max_kv_len = 0x7fffffff;
  problem.page_size = 64;
  problem.varlen_q = true;
  const auto explanation = selector::explain(pack.table(), problem, h200());
  REQUIRE(explanation.has_value());
  REQUIRE(explanation->refusal.has_value());
  CHECK_THAT(explanation->refusal->message(), Catch::Matchers::Contains("max_q_len is 2147483647"));
  const auto& nearest = explanation->packs.at(0).nearest;
  REQUIRE_FALSE(nearest.empty());
  CHECK(nearest.front().differences.front().field == "grid");
}

TEST_CASE("a refusal names what a kernel must have, and nothing that no rule has chosen") {
  AttentionProblem problem = gpt_oss();
  problem.head_dim_qk = 96;
  for (const bool strict : {false, true}) {
    selector::SelectOptions options;
    options.strict = strict;
    const auto selection = selector::select(own_family().table(), problem, h200(), options);
    REQUIRE_FALSE(selection.has_value());
    const std::string& text = selection.error().message();
    CHECK_THAT(text, Catch::Matchers::Contains("a kernel must have: dtype_q bf16") &&
                         Catch::Matchers::Contains("head_dim_qk 96"));
    CHECK(text.find("tile_q 0") == std::string::npos);
    CHECK(text.find("kernel_type") == std::string::npos);
    CHECK(text.find("without --strict") == std::string::npos);
  }
}

}  // namespace cubist
