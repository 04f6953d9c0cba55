#include "importer/meta_row.h"

#include <algorithm>
#include <string>
#include <vector>

#include "metadata_header.h"
#include "support/catch.h"

namespace cubist {
namespace {

using Row = test::MetadataHeader::Row;

/// The row's reading, or the message of the error.
std::pair<MetaRow, std::string> read_row(int generation, const Row& row) {
  test::MetadataHeader header(test::generation_columns(generation));
  header.add(row);
  static std::string text;  // rows point into it
  text = header.text();
  const auto tables = parse_meta_tables(text, "h");
  REQUIRE(tables);
  const auto reader = MetaRowReader::create(tables->at(0), "h");
  REQUIRE(reader);
  auto read = reader->read(0);
  return read ? std::pair(*read, std::string()) : std::pair(MetaRow(), read.error().message());
}

TEST_CASE("the SM column is read as word and as number") {
  for (const auto& [text, arch] :
       std::vector<std::pair<std::string, std::string>>{{"kSM_100", "sm_100a"},
                                                        {"kSM_100f", "sm_100f"},
                                                        {"kSM_103", "sm_103a"},
                                                        {"kSM_103a", "sm_103a"},
                                                        {"100", "sm_100a"},
                                                        {"10100", "sm_100f"},
                                                        {"107", "sm_107a"}}) {
    CHECK(to_string(read_row(37, {{"mSM", text}}).first.traits.arch) == arch);
  }
}

TEST_CASE("K and V may differ, and the common column must say so") {
  const auto [sage, error] = read_row(37, {{"mDataTypeKv", "DATA_TYPE_UNKNOWN"},
                                           {"mDataTypeK", "DATA_TYPE_INT8"},
                                           {"mDataTypeV", "DATA_TYPE_E4M3"}});
  CHECK(error.empty());
  CHECK(sage.traits.dtype_k == Dtype::kInt8);
  CHECK(sage.traits.dtype_v == Dtype::kE4m3);
  CHECK_FALSE(sage.kv_type_differs);
  CHECK(read_row(37, {{"mDataTypeKv", "DATA_TYPE_E4M3"}}).first.kv_type_differs);
}

TEST_CASE("Q and K of another type count their head dimension in elements of that type") {
  const Row e4m3 = {
      {"mDataTypeQ", "DATA_TYPE_E4M3"}, {"mDataTypeKv", "DATA_TYPE_E4M3"}, {"mHeadDimQk", "256"}};
  Row bf16 = e4m3;
  bf16["mDataTypeQkReinterpret"] = "DATA_TYPE_BF16";
  const KernelTraits traits = read_row(35, bf16).first.traits;
  CHECK(traits.dtype_q == Dtype::kBf16);
  CHECK(traits.dtype_k == Dtype::kBf16);
  CHECK(traits.dtype_v == Dtype::kE4m3);
  CHECK(traits.head_dim_qk == 128);
  Row int8 = e4m3;
  int8["mDataTypeQkReinterpret"] = "DATA_TYPE_INT8";
  CHECK(read_row(35, int8).first.traits.head_dim_qk == 256);
}

TEST_CASE("a page of 128 that the name does not state is read at run time") {
  const Row page = {{"mNumTokensPerPage", "128"}};
  CHECK(read_row(37, page).first.traits.dynamic_page);
  Row compiled = page;
  compiled["mFuncName"] = "\"kernelP128VarSeq\"";
  CHECK_FALSE(read_row(37, compiled).first.traits.dynamic_page);
  compiled["mFuncName"] = "\"kernelP1280\"";
  CHECK(read_row(37, compiled).first.traits.dynamic_page);
  CHECK_FALSE(read_row(37, {}).first.traits.dynamic_page);
}

TEST_CASE("columns that changed from bool to int are read either way") {
  CHECK(read_row(31, {{"mSparseMla", "true"}}).first.traits.sparse_type ==
        SparseType::kStaticTokens);
  CHECK(read_row(37, {{"mSparseAttn", "2"}}).first.traits.sparse_type ==
        SparseType::kDynamicTokens);
  CHECK(read_row(37, {{"m2CtaMma", "1"}}).first.traits.two_cta_mma);
  CHECK(read_row(37, {{"mSharedMemBytes", "0x20u"}}).first.traits.smem == 32);
}

TEST_CASE("newer columns become traits, reserved ones a mark") {
  CHECK(read_row(41, {{"mFp16Softmax", "true"}}).first.traits.fp16_softmax);
  CHECK(read_row(41, {{"mUsesDsv4Ue8m0ScaleO", "true"}}).first.traits.ue8m0_scale_o);
  CHECK(read_row(37, {{"mReserved2", "true"}}).first.reserved_set);
  CHECK(read_row(37, {{"mCubinSize", "17"}}).first.cubin_size == 17);
}

TEST_CASE("a value that is not one for its column is refused with line and column") {
  struct Liar {
    const char* column;
    const char* value;
  };
  const std::vector<Liar> liars = {
      {"mDataTypeQ", "DATA_TYPE_E3M4"},
      {"mDataTypeQ", "5"},
      {"mTileSizeQ", "4097"},
      {"mTileSizeQ", "\"128\""},
      {"mTileSizeQ", "12x"},
      {"mTileSizeQ", "99999999999999999999"},
      {"mHeadDimQk", "8193"},
      {"mSM", "kSM_"},
      {"mSM", "kSM_100x"},
      {"mSM", "sm_100"},
      {"mSM", "7"},
      {"mSM", "20100"},
      {"mFuncName", "kernel"},
      {"mFuncName", "0"},
      {"sha256", "nullptr"},
      {"mSharedMemBytes", "1048577"},
      {"mThreadsPerCTA", "1025"},
      {"mQkvLayout", "4"},
      {"mMaskType", "4"},
      {"mKernelType", "4"},
      {"mTileScheduler", "2"},
      {"mMultiCtasKvMode", "4"},
      {"mGroupsHeadsQ", "maybe"},
      {"mGroupsHeadsQ", "2"},
      {"mSparseAttn", "3"},
      {"mNumEltsPerSageAttnBlkK", "256"},
      {"mReserved1", "\"x\""},
      {"mCubinSize", "nullptr"},
  };
  for (const Liar& liar : liars) {
    const std::string error = read_row(37, {{liar.column, liar.value}}).second;
    INFO(liar.column << " " << liar.value << ": " << error);
    CHECK(error.starts_with(std::string("h:42: ") + liar.column + " of row 0 is '"));
  }
}

/// The error of the columns, or "".
std::string column_error(std::vector<std::string> columns) {
  const std::string text = "struct S {" + [&] {
    std::string members;
    for (const std::string& column : columns) members += " int " + column + ";";
    return members;
  }() + "};\nconst S t[] = {};";
  const auto tables = parse_meta_tables(text, "h");
  REQUIRE(tables);
  const auto reader = MetaRowReader::create(tables->at(0), "h");
  return reader ? "" : reader.error().message();
}

TEST_CASE("an unknown column is refused by name, a missing or doubled one too") {
  std::vector<std::string> columns = test::generation_columns(37);
  CHECK(column_error(columns).empty());
  columns.insert(columns.begin() + 3, "mBrandNew");
  CHECK(
      column_error(columns) ==
      "h: struct S has a column this program does not know: 'mBrandNew' (number 4 of 38); a newer "
      "Cubist may know it");
  columns[3] = "mStepQ";
  CHECK(column_error(columns) == "h: struct S has two columns mStepQ");
  columns.erase(columns.begin() + 3);
  columns.erase(std::find(columns.begin(), columns.end(), "mMaskType"));
  CHECK(column_error(columns) == "h: struct S lacks the column mMaskType");
  columns = test::generation_columns(31);
  columns.erase(std::find(columns.begin(), columns.end(), "mDataTypeKv"));
  CHECK(column_error(columns) ==
        "h: struct S lacks the column mDataTypeKv (or mDataTypeK and mDataTypeV)");
}

TEST_CASE("columns may come in any order") {
  std::vector<std::string> columns = test::generation_columns(37);
  std::reverse(columns.begin(), columns.end());
  test::MetadataHeader header(columns);
  header.add({{"mStepQ", "77"}});
  const std::string text = header.text();
  const auto tables = parse_meta_tables(text, "h");
  REQUIRE(tables);
  CHECK(MetaRowReader::create(tables->at(0), "h")->read(0)->traits.step_q == 77);
}

}  // namespace
}  // namespace cubist
