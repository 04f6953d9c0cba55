#include "importer/name_check.h"

#include <string>
#include <vector>

#include "support/catch.h"

namespace cubist {
namespace {

constexpr const char* kMla =
    "fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512HVPerCta256PagedKvDenseP32MultiCtasKvVarSeq"
    "SkipsSoftmaxQ64Kv128StaticKeepsAbForGen";

KernelTraits mla_traits() {
  KernelTraits traits;
  traits.arch = {100, SmArch::Kind::kFamily};
  traits.dtype_q = traits.dtype_k = traits.dtype_v = Dtype::kE4m3;
  traits.dtype_o = Dtype::kBf16;
  traits.head_dim_qk = 576;
  traits.head_dim_vo = 512;
  traits.head_dim_per_cta_v = 256;
  traits.page_size = 32;
  traits.tile_q = 64;
  traits.tile_kv = 128;
  traits.kernel_type = KernelType::kKeepsMmaAbGeneration;
  traits.multi_ctas_kv_mode = MultiCtasKvMode::kSeparateReduction;
  traits.skip_softmax = true;
  return traits;
}

TEST_CASE("a name that agrees says nothing") {
  CHECK(name_contradiction(kMla, mla_traits()) == std::nullopt);
  KernelTraits causal = mla_traits();
  causal.mask_type = MaskType::kCausal;  // generation kernels called Dense are causal too
  CHECK(name_contradiction(kMla, causal) == std::nullopt);
}

TEST_CASE("names of another form are not compared") {
  CHECK(name_contradiction("", {}) == std::nullopt);
  CHECK(name_contradiction("kernel_x", {}) == std::nullopt);
  CHECK(name_contradiction("fmhaSm100f", {}) == std::nullopt);
}

TEST_CASE("each trait that contradicts the name is named") {
  struct Case {
    void (*change)(KernelTraits&);
    const char* contradiction;
  };
  const std::vector<Case> cases = {
      {[](KernelTraits& t) {
         t.arch = {103, SmArch::Kind::kSpecific};
       },
       "arch: the name says sm_100f, the row sm_103a"},
      {[](KernelTraits& t) { t.dtype_q = Dtype::kFp16; },
       "dtype_q: the name says e4m3, the row fp16"},
      {[](KernelTraits& t) { t.dtype_k = Dtype::kE2m1; },
       "dtype_k: the name says e4m3, the row e2m1"},
      {[](KernelTraits& t) { t.dtype_v = Dtype::kE2m1; },
       "dtype_v: the name says e4m3, the row e2m1"},
      {[](KernelTraits& t) { t.dtype_o = Dtype::kFp16; },
       "dtype_o: the name says bf16, the row fp16"},
      {[](KernelTraits& t) { t.head_dim_qk = 64; }, "head_dim_qk: the name says 576, the row 64"},
      {[](KernelTraits& t) { t.head_dim_vo = 256; }, "head_dim_vo: the name says 512, the row 256"},
      {[](KernelTraits& t) { t.head_dim_per_cta_v = 128; },
       "head_dim_per_cta_v: the name says 256, the row 128"},
      {[](KernelTraits& t) { t.page_size = 64; }, "page_size: the name says 32, the row 64"},
      {[](KernelTraits& t) { t.tile_q = 128; }, "tile_q: the name says 64, the row 128"},
      {[](KernelTraits& t) { t.tile_kv = 64; }, "tile_kv: the name says 128, the row 64"},
      {[](KernelTraits& t) { t.skip_softmax = false; },
       "skip_softmax: the name says true, the row false"},
      {[](KernelTraits& t) { t.two_cta_mma = true; },
       "two_cta_mma: the name says false, the row true"},
      {[](KernelTraits& t) { t.multi_ctas_kv_mode = MultiCtasKvMode::kOff; },
       "multi_ctas_kv_mode: the name says gmem, the row off"},
      {[](KernelTraits& t) { t.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory; },
       "multi_ctas_kv_mode: the name says gmem, the row cga_smem"},
      {[](KernelTraits& t) { t.scheduler = TileScheduler::kPersistent; },
       "scheduler: the name says static, the row persistent"},
      {[](KernelTraits& t) { t.kernel_type = KernelType::kSwapsMmaAbGeneration; },
       "kernel_type: the name says keeps, the row swaps"},
      {[](KernelTraits& t) { t.mask_type = MaskType::kSlidingOrChunked; },
       "mask_type: the name says another, the row sliding_or_chunked"},
      {[](KernelTraits& t) { t.mask_type = MaskType::kCustom; },
       "mask_type: the name says another, the row custom"},
  };
  for (const Case& c : cases) {
    KernelTraits traits = mla_traits();
    c.change(traits);
    CHECK(name_contradiction(kMla, traits) == std::optional<std::string>(c.contradiction));
  }
}

TEST_CASE("the other spellings of types and heads are understood") {
  KernelTraits traits = mla_traits();
  traits.skip_softmax = false;
  traits.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory;
  traits.mask_type = MaskType::kSlidingOrChunked;
  traits.dtype_k = traits.dtype_v = Dtype::kE2m1;
  traits.dtype_o = Dtype::kE4m3;
  traits.head_dim_qk = traits.head_dim_vo = 128;
  traits.two_cta_mma = true;
  const std::string name =
      "fmhaSm100fKernel_"
      "QE4m3KvE2m1OE4m3H128PagedKvSlidingOrChunkedCausalP32MultiCtasKvCgaVarSeqQ64Kv128"
      "Static2CtaKeepsAbForGen";
  CHECK(name_contradiction(name, traits) == std::nullopt);
  traits.head_dim_vo = 64;
  CHECK(name_contradiction(name, traits) ==
        std::optional<std::string>("head_dim_vo: the name says 128, the row 64"));

  KernelTraits sage = mla_traits();
  sage.skip_softmax = false;
  sage.multi_ctas_kv_mode = MultiCtasKvMode::kOff;
  sage.kernel_type = KernelType::kContext;
  sage.scheduler = TileScheduler::kPersistent;
  sage.dtype_q = sage.dtype_k = Dtype::kInt8;
  sage.tile_q = 128;
  sage.head_dim_qk = sage.head_dim_vo = 128;
  sage.page_size = 0;
  CHECK(name_contradiction(
            "fmhaSm100fKernel_QkInt8VE4m3OBfloat16HQk128HV128SeparateQkvDenseVarSeqQ128Kv1"
            "28SageQ1SageK4SageV1PersistentContext",
            sage) == std::nullopt);
  sage.dtype_v = Dtype::kInt8;
  CHECK(name_contradiction("fmhaSm100fKernel_QkInt8VE4m3OBfloat16", sage) ==
        std::optional<std::string>("dtype_v: the name says e4m3, the row int8"));
}

}  // namespace
}  // namespace cubist
