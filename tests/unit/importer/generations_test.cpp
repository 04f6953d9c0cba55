#include <algorithm>
#include <string>
#include <vector>

#include "importer/meta_row.h"
#include "metadata_header.h"
#include "support/catch.h"

namespace cubist {
namespace test {

std::vector<std::string> generation_columns(int generation) {
  std::vector<std::string> columns = {"mDataTypeQ",
                                      "mDataTypeKv",
                                      "mDataTypeO",
                                      "mTileSizeQ",
                                      "mTileSizeKv",
                                      "mStepQ",
                                      "mStepKv",
                                      "mHeadDimPerCtaV",
                                      "mHeadDimQk",
                                      "mHeadDimV",
                                      "mSM",
                                      "mCubin",
                                      "mCubinSize",
                                      "mFuncName",
                                      "mSharedMemBytes",
                                      "mThreadsPerCTA",
                                      "mQkvLayout",
                                      "mNumTokensPerPage",
                                      "mMaskType",
                                      "mKernelType",
                                      "mMaxNumHeadsQPerKvInCta",
                                      "mTileScheduler",
                                      "mMultiCtasKvMode",
                                      "mGroupsHeadsQ",
                                      "mReuseSmemKForV",
                                      "m2CtaMma",
                                      "sha256"};
  const auto before = [&](const std::string& where, std::vector<std::string> what) {
    columns.insert(std::find(columns.begin(), columns.end(), where), what.begin(), what.end());
  };
  const auto replace = [&](const std::string& from, const std::string& to) {
    *std::find(columns.begin(), columns.end(), from) = to;
  };
  if (generation == 27) return columns;
  before("sha256", {"mSparseMla", "mSkipsSoftmaxWhenPossible"});
  if (generation == 28) return columns;
  before("mReuseSmemKForV", {"mGroupsTokensHeadsQ"});
  if (generation == 35) {
    before("mGroupsHeadsQ", {"mNumEltsPerSageAttnBlkQ", "mNumEltsPerSageAttnBlkK",
                             "mNumEltsPerSageAttnBlkP", "mNumEltsPerSageAttnBlkV"});
    before("sha256", {"mDataTypeQkReinterpret"});
    return columns;
  }
  columns.erase(std::find(columns.begin(), columns.end(), "mMaxNumHeadsQPerKvInCta"));
  if (generation == 29) return columns;
  if (generation == 30) before("sha256", {"mReserved"});
  if (generation == 30) return columns;
  before("sha256", {"mReserved1", "mReserved2"});
  if (generation == 31) return columns;
  replace("mSparseMla", "mSparseAttn");
  before("mDataTypeO", {"mDataTypeK", "mDataTypeV"});
  before("mGroupsHeadsQ", {"mNumEltsPerSageAttnBlkQ", "mNumEltsPerSageAttnBlkK",
                           "mNumEltsPerSageAttnBlkP", "mNumEltsPerSageAttnBlkV"});
  if (generation == 37) return columns;
  replace("mReserved1", "mFp16Softmax");
  replace("mReserved2", "mUsesSpcompress");
  before("sha256", {"mEnablesBf16QFp8KvKOnlyTransform", "mSeparateTransformedKv",
                    "mFusesDsv4InvRopeFp8Quant", "mUsesDsv4Ue8m0ScaleO"});
  return columns;
}

}  // namespace test

namespace {

TEST_CASE("the same kernel is read from every generation of columns") {
  for (const int generation : {27, 28, 29, 30, 31, 35, 37, 41}) {
    INFO(generation);
    const std::vector<std::string> columns = test::generation_columns(generation);
    CHECK(columns.size() == static_cast<std::size_t>(generation == 28 ? 29 : generation));
    test::MetadataHeader header(columns);
    header.add({});
    const std::string text = header.text();
    const auto tables = parse_meta_tables(text, "h");
    REQUIRE(tables);
    REQUIRE(tables->size() == 1);
    CHECK(is_fmha_table((*tables)[0]));
    const auto reader = MetaRowReader::create((*tables)[0], "h");
    REQUIRE(reader);
    const auto row = reader->read(0);
    REQUIRE(row);
    CHECK(row->name == "kernel");
    CHECK(row->digest == std::string(64, 'a'));
    const KernelTraits& traits = row->traits;
    CHECK(to_string(traits.arch) == "sm_100f");
    CHECK(traits.dtype_q == Dtype::kBf16);
    CHECK(traits.dtype_k == Dtype::kBf16);
    CHECK(traits.dtype_v == Dtype::kBf16);
    CHECK(traits.step_kv == 256);
    CHECK(traits.head_dim_qk == 64);
    CHECK(traits.smem == 40000);
    CHECK(traits.threads == 512);
    CHECK(traits.kernel_type == KernelType::kSwapsMmaAbGeneration);
    CHECK(traits.multi_ctas_kv_mode == MultiCtasKvMode::kGlobalMemory);
    CHECK(traits.groups_heads_q);
    CHECK(traits.groups_tokens_heads_q == (generation > 28));
    CHECK(traits.max_q_heads_per_cta == (generation <= 28 || generation == 35 ? 8 : 0));
    CHECK_FALSE(row->reserved_set);
  }
}

}  // namespace
}  // namespace cubist
