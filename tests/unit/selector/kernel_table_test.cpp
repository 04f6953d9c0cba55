#include "selector/kernel_table.h"

#include "kernels.h"
#include "support/catch.h"

namespace cubist {
namespace {

KernelRecord record(const std::string& name, SmArch arch) {
  KernelRecord r;
  r.name = name;
  r.sha256.bytes[0] = static_cast<std::uint8_t>(name.size());
  r.sha256.bytes[1] = static_cast<std::uint8_t>(name.back());
  r.traits.dtype_q = r.traits.dtype_k = r.traits.dtype_v = r.traits.dtype_o = Dtype::kBf16;
  r.traits.arch = arch;
  r.traits.head_dim_qk = r.traits.head_dim_vo = r.traits.head_dim_per_cta_v = 128;
  r.traits.tile_q = r.traits.tile_kv = r.traits.step_q = r.traits.step_kv = 128;
  r.traits.threads = 512;
  r.traits.page_size = 32;
  return r;
}

constexpr SmArch kFamily{100, SmArch::Kind::kFamily};
constexpr SmArch k103{103, SmArch::Kind::kSpecific};

const KernelRecord* find(const selector::KernelTable& table, const KernelTraits& wanted,
                         std::uint32_t sm) {
  const selector::PackTable& pack = table.packs()[0];
  return pack.find(pack.find_group(wanted), wanted, sm);
}

}  // namespace

TEST_CASE("a kernel made for exactly the device wins over a family kernel of the same key") {
  test::TestPack pack;
  pack.kernels = {record("family", kFamily), record("specific", k103)};
  const auto table = pack.table();
  const KernelTraits wanted = pack.kernels[0].traits;
  CHECK(find(table, wanted, 100)->name == "family");
  CHECK(find(table, wanted, 103)->name == "specific");
  CHECK(find(table, wanted, 90) == nullptr);
}

TEST_CASE("each field of a key is compared whole") {
  test::TestPack pack;
  pack.kernels = {record("a", kFamily)};
  const auto table = pack.table();
  const auto misses = [&](auto change) {
    KernelTraits wanted = pack.kernels[0].traits;
    change(wanted);
    return find(table, wanted, 100) == nullptr;
  };
  CHECK_FALSE(misses([](KernelTraits&) {}));
  CHECK_FALSE(misses([](KernelTraits& t) { t.step_q = 1; }));  // no part of the key
  CHECK(misses([](KernelTraits& t) { t.head_dim_qk = 129; }));
  CHECK(misses([](KernelTraits& t) { t.head_dim_vo = 129; }));
  CHECK(misses([](KernelTraits& t) { t.head_dim_per_cta_v = 64; }));
  CHECK(misses([](KernelTraits& t) { t.tile_q = 64; }));
  CHECK(misses([](KernelTraits& t) { t.tile_kv = 64; }));
  CHECK(misses([](KernelTraits& t) { t.page_size = 33; }));
  CHECK(misses([](KernelTraits& t) { t.dynamic_page = true; }));
  CHECK(misses([](KernelTraits& t) { t.mask_type = MaskType::kCausal; }));
  CHECK(misses([](KernelTraits& t) { t.kernel_type = KernelType::kKeepsMmaAbGeneration; }));
  CHECK(misses([](KernelTraits& t) { t.scheduler = TileScheduler::kPersistent; }));
  CHECK(misses([](KernelTraits& t) { t.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory; }));
  CHECK(misses([](KernelTraits& t) { t.two_cta_mma = true; }));
  CHECK(misses([](KernelTraits& t) { t.reuse_smem_k_for_v = true; }));
  CHECK(misses([](KernelTraits& t) { t.skip_softmax = true; }));
  CHECK(misses([](KernelTraits& t) { t.dtype_o = Dtype::kE2m1; }));
  CHECK(misses([](KernelTraits& t) { t.sage_block_k = 16; }));
  CHECK(misses([](KernelTraits& t) { t.qkv_layout = QkvLayout::kSeparate; }));
  CHECK(misses([](KernelTraits& t) { t.sparse_type = SparseType::kStaticTokens; }));
}

TEST_CASE("of equal kernels the name decides, then the hash, whatever their order") {
  for (const bool reversed : {false, true}) {
    test::TestPack pack;
    pack.kernels = {record("b", kFamily), record("a", kFamily), record("a", kFamily)};
    pack.kernels[2].sha256.bytes[0] = 0;
    if (reversed) std::swap(pack.kernels[0], pack.kernels[2]);
    const auto table = pack.table();
    const KernelRecord* found = find(table, pack.kernels[0].traits, 100);
    CHECK(found->name == "a");
    CHECK(found->sha256.bytes[0] == 0);
  }
}

TEST_CASE("barred kernels and kernels of unknown ways are left out") {
  test::TestPack pack;
  pack.kernels = {record("a", kFamily), record("b", kFamily), record("c", kFamily)};
  pack.kernels[2].traits.fp16_softmax = true;
  pack.kernels[2].traits.page_size = 64;
  const selector::PackView view = pack.view();
  const std::vector<selector::BarredKernel> barred = {{pack.kernels[0].sha256, "wrong results"}};
  const auto table = selector::KernelTable::build({&view, 1}, barred);
  REQUIRE(table.has_value());
  CHECK(find(*table, pack.kernels[0].traits, 100)->name == "b");
  CHECK(find(*table, pack.kernels[2].traits, 100) == nullptr);
  CHECK(table->packs()[0].is_left_out(pack.kernels[0]));
  CHECK_FALSE(table->packs()[0].is_left_out(pack.kernels[1]));
  CHECK(table->packs()[0].is_left_out(pack.kernels[2]));
}

TEST_CASE("a pack without known rules is not indexed, and an empty one finds nothing") {
  test::TestPack pack;
  CHECK(find(pack.table(), record("a", kFamily).traits, 100) == nullptr);
  pack.kernels = {record("a", kFamily)};
  pack.revision = HeuristicRevision::kNone;
  CHECK(find(pack.table(), pack.kernels[0].traits, 100) == nullptr);
}

TEST_CASE("a kernel with a step of 0 is refused by name") {
  test::TestPack pack;
  pack.kernels = {record("a", kFamily), record("broken", kFamily)};
  pack.kernels[1].traits.step_kv = 0;
  const selector::PackView view = pack.view();
  const auto table = selector::KernelTable::build({&view, 1});
  REQUIRE_FALSE(table.has_value());
  CHECK(table.error().code() == StatusCode::kManifestInvalid);
  CHECK(table.error().message().find("broken") != std::string::npos);
}

TEST_CASE("every kernel of a large pack is found, and groups hold each kernel once") {
  const test::TestPack pack = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  const auto table = pack.table();
  std::vector<bool> seen(pack.kernels.size());
  for (const KernelRecord& r : pack.kernels) {
    const KernelRecord* found = find(table, r.traits, r.traits.arch.sm);
    REQUIRE(found != nullptr);
    REQUIRE(found->traits == r.traits);
    const auto group = table.packs()[0].find_group(r.traits);
    REQUIRE(group != selector::PackTable::kNoGroup);
  }
  selector::PackTable::GroupId group = 0;
  for (auto members = table.packs()[0].group_members(group); !members.empty();
       members = table.packs()[0].group_members(++group)) {
    for (const std::uint32_t index : members) {
      REQUIRE_FALSE(seen[index]);
      seen[index] = true;
    }
  }
  CHECK(std::find(seen.begin(), seen.end(), false) == seen.end());
}

TEST_CASE("thousands of equal kernels neither slow the index down nor change the choice") {
  test::TestPack pack;
  for (int i = 0; i < 20000; ++i)
    pack.kernels.push_back(record("same" + std::to_string(i), kFamily));
  const auto table = pack.table();
  CHECK(find(table, pack.kernels[0].traits, 100)->name == "same0");
}

}  // namespace cubist
