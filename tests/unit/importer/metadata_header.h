#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cubist::test {

/// Writes a metadata header with any columns: those of the published generations by name, with
/// plausible values for a causal paged decode kernel, unless a row says otherwise.
class MetadataHeader {
 public:
  using Row = std::map<std::string, std::string>;

  explicit MetadataHeader(std::vector<std::string> columns, std::string suffix = "")
      : columns_(std::move(columns)), suffix_(std::move(suffix)) {}

  void add(Row row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    const std::string type = "TllmGenFmhaKernelMetaInfo" + suffix_;
    std::string text = "struct " + type + "\n{\n";
    for (const std::string& column : columns_) text += "    int " + column + ";\n";
    text += "};\nstatic const " + type + " sTllmGenFmhaKernelMetaInfos" + suffix_ + "[] = {\n";
    for (const Row& row : rows_) {
      text += "{ ";
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const auto own = row.find(columns_[i]);
        text += (i ? ", " : "") + (own != row.end() ? own->second : plausible().at(columns_[i]));
      }
      text += "},\n";
    }
    return text + "};\n";
  }

  static const Row& plausible() {
    static const Row kValues = {
        {"mDataTypeQ", "DATA_TYPE_BF16"},
        {"mDataTypeKv", "DATA_TYPE_BF16"},
        {"mDataTypeK", "DATA_TYPE_BF16"},
        {"mDataTypeV", "DATA_TYPE_BF16"},
        {"mDataTypeO", "DATA_TYPE_BF16"},
        {"mDataTypeQkReinterpret", "DATA_TYPE_BF16"},
        {"mTileSizeQ", "16"},
        {"mTileSizeKv", "128"},
        {"mStepQ", "16"},
        {"mStepKv", "256"},
        {"mHeadDimPerCtaV", "64"},
        {"mHeadDimQk", "64"},
        {"mHeadDimV", "64"},
        {"mSM", "kSM_100f"},
        {"mCubin", "nullptr"},
        {"mCubinSize", "0"},
        {"mFuncName", "\"kernel\""},
        {"mSharedMemBytes", "40000"},
        {"mThreadsPerCTA", "512"},
        {"mQkvLayout", "2"},
        {"mNumTokensPerPage", "32"},
        {"mMaskType", "1"},
        {"mKernelType", "2"},
        {"mMaxNumHeadsQPerKvInCta", "8"},
        {"mTileScheduler", "0"},
        {"mMultiCtasKvMode", "1"},
        {"mNumEltsPerSageAttnBlkQ", "0"},
        {"mNumEltsPerSageAttnBlkK", "0"},
        {"mNumEltsPerSageAttnBlkP", "0"},
        {"mNumEltsPerSageAttnBlkV", "0"},
        {"mGroupsHeadsQ", "true"},
        {"mGroupsTokensHeadsQ", "true"},
        {"mReuseSmemKForV", "false"},
        {"m2CtaMma", "false"},
        {"mSparseMla", "false"},
        {"mSparseAttn", "0"},
        {"mSkipsSoftmaxWhenPossible", "false"},
        {"mReserved", "false"},
        {"mReserved1", "false"},
        {"mReserved2", "false"},
        {"mFp16Softmax", "false"},
        {"mUsesSpcompress", "false"},
        {"mEnablesBf16QFp8KvKOnlyTransform", "false"},
        {"mSeparateTransformedKv", "false"},
        {"mFusesDsv4InvRopeFp8Quant", "false"},
        {"mUsesDsv4Ue8m0ScaleO", "false"},
        {"sha256", "\"" + std::string(64, 'a') + "\""},
    };
    return kValues;
  }

 private:
  std::vector<std::string> columns_;
  std::string suffix_;
  std::vector<Row> rows_;
};

/// The columns of the published generations, by how many there are (SM 10.0 FMHA of
/// flashinfer-cubin): 27 (0.4.1, 0.5.2), 29 (0.6.0), 30 (0.6.6), 31 (0.6.8), 35 (its second table),
/// 37 (0.6.13), 41 (0.7); 28 stands for 0.5.3, which has 29 columns as well.
std::vector<std::string> generation_columns(int generation);

}  // namespace cubist::test
