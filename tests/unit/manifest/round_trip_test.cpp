#include <random>
#include <sstream>
#include <string>

#include "manifest/parse.h"
#include "manifest/validate.h"
#include "manifest/write.h"
#include "sample_manifest.h"
#include "support/catch.h"

namespace cubist {
namespace {

TEST_CASE("writing and reading gives the same manifest, and the same text again") {
  const Result<Manifest> first = parse_manifest(test::sample_manifest(), "m.json");
  REQUIRE(first);
  const std::string text = write_manifest(*first);
  const Result<Manifest> second = parse_manifest(text, "written.json");
  REQUIRE(second);
  CHECK(*second == *first);
  CHECK(write_manifest(*second) == text);
}

TEST_CASE("serial and expiry are written and read, and left out where they are not said") {
  Manifest manifest = *parse_manifest(test::sample_manifest(), "m.json");
  CHECK(manifest.serial == 0);
  CHECK(manifest.expires.empty());
  CHECK(write_manifest(manifest).find("serial") == std::string::npos);
  manifest.serial = Manifest::kMaxSerial;
  manifest.expires = "2027-01-31";
  const Result<Manifest> again = parse_manifest(write_manifest(manifest), "written.json");
  REQUIRE(again);
  CHECK(*again == manifest);
}

TEST_CASE("a pack's least driver is written and read, in a document of version 2 alone") {
  Manifest manifest = parse_manifest(test::sample_manifest(), "m.json").value();
  CHECK_THAT(write_manifest(manifest), Catch::Contains("\"schema_version\": 1,"));
  manifest.packs[0].min_driver = 12080;
  const std::string text = write_manifest(manifest);
  CHECK_THAT(text, Catch::Contains("\"schema_version\": 2,") &&
                       Catch::Contains("\n      \"min_driver\": \"12.8\",\n"));
  CHECK(parse_manifest(text, "m.json").value() == manifest);
}

TEST_CASE("the writer puts one kernel on a line and leaves defaults out") {
  const std::string text = write_manifest(*parse_manifest(test::sample_manifest(), "m.json"));
  std::istringstream lines(text);
  int kernel_lines = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"sha256\"") != std::string::npos) ++kernel_lines;
  }
  CHECK(kernel_lines == 2);
  CHECK(text.find("\"step_kv\"") == std::string::npos);
  CHECK(text.find("\"groups_heads_q\"") == std::string::npos);
  CHECK(text.find("\"path\":\"kernel_a.cubin\"") == std::string::npos);
  CHECK(text.find("\"dtype_k\":\"int8\",\"dtype_v\":\"e4m3\"") != std::string::npos);
}

class RandomTraits {
 public:
  explicit RandomTraits(unsigned seed) : random_(seed) {}

  KernelTraits next() {
    KernelTraits traits;
    traits.dtype_q = static_cast<Dtype>(below(8));
    traits.dtype_k = static_cast<Dtype>(below(8));
    traits.dtype_v = below(2) ? traits.dtype_k : static_cast<Dtype>(below(8));
    traits.dtype_o = static_cast<Dtype>(below(8));
    traits.arch = {static_cast<std::uint16_t>(90 + 10 * below(3)),
                   static_cast<SmArch::Kind>(below(3))};
    traits.head_dim_per_cta_v = number(64, 128);
    traits.head_dim_vo = static_cast<std::uint16_t>(traits.head_dim_per_cta_v * (1 + below(3)));
    traits.head_dim_qk = below(2) ? traits.head_dim_vo : number(64, 192);
    traits.tile_q = number(8, 64);
    traits.tile_kv = number(64, 128);
    traits.step_q = below(2) ? traits.tile_q : number(64, 256);
    traits.step_kv = below(2) ? traits.tile_kv : number(64, 256);
    traits.threads = number(128, 512);
    traits.smem = below(1U << 20);
    traits.page_size = number(0, 64);
    constexpr KernelType kTypes[] = {KernelType::kContext, KernelType::kSwapsMmaAbGeneration,
                                     KernelType::kKeepsMmaAbGeneration};
    traits.kernel_type = kTypes[below(3)];
    traits.qkv_layout = static_cast<QkvLayout>(below(4));
    traits.mask_type = static_cast<MaskType>(below(4));
    traits.scheduler = static_cast<TileScheduler>(below(2));
    traits.multi_ctas_kv_mode = static_cast<MultiCtasKvMode>(below(4));
    traits.sparse_type = static_cast<SparseType>(below(3));
    traits.max_q_heads_per_cta = number(0, 64);
    traits.sage_block_q = static_cast<std::uint8_t>(below(256));
    traits.sage_block_k = static_cast<std::uint8_t>(below(2));
    traits.sage_block_p = static_cast<std::uint8_t>(below(2));
    traits.sage_block_v = static_cast<std::uint8_t>(below(2));
    for (bool KernelTraits::*flag :
         {&KernelTraits::dynamic_page, &KernelTraits::groups_heads_q,
          &KernelTraits::groups_tokens_heads_q, &KernelTraits::reuse_smem_k_for_v,
          &KernelTraits::two_cta_mma, &KernelTraits::skip_softmax}) {
      traits.*flag = below(2) == 1;
    }
    return traits;
  }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  std::uint16_t number(std::uint16_t a, std::uint16_t b) { return below(2) ? a : b; }

  std::mt19937 random_;
};

TEST_CASE("any valid traits survive writing and reading") {
  RandomTraits random(20);
  Manifest manifest = *parse_manifest(test::sample_manifest(), "m.json");
  std::vector<KernelRecord>& kernels = manifest.packs[0].kernels;
  kernels.clear();
  for (int i = 0; i < 2000; ++i) {
    KernelRecord record;
    record.name = "kernel_" + std::to_string(i);
    record.path = i % 3 == 0 ? "other/" + record.name : record.name + ".cubin";
    record.sha256.bytes[0] = static_cast<std::uint8_t>(1 + i / 256);
    record.sha256.bytes[31] = static_cast<std::uint8_t>(i);
    record.size_bytes = static_cast<std::uint64_t>(i) + 1;
    record.traits = random.next();
    kernels.push_back(record);
  }
  REQUIRE(validate_manifest(manifest));
  const Result<Manifest> read = parse_manifest(write_manifest(manifest), "m.json");
  REQUIRE(read);
  REQUIRE(read->packs[0].kernels.size() == kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(read->packs[0].kernels[i] == kernels[i]);
}

}  // namespace
}  // namespace cubist
