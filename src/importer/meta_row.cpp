#include "importer/meta_row.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <variant>

#include "importer/meta_value.h"
#include "manifest/text.h"

namespace cubist {
namespace {

using T = KernelTraits;

/// What a row says beside the traits, before it is put together.
struct RawRow {
  MetaRow row;
  std::optional<Dtype> dtype_kv;
  std::optional<Dtype> dtype_k;
  std::optional<Dtype> dtype_v;
  std::optional<Dtype> qk_reinterpret;
};

struct Ignored {};
struct ReservedFlag {};
struct ArchColumn {};
using Target = std::variant<std::uint16_t T::*, std::uint8_t T::*, std::uint32_t T::*, bool T::*,
                            Dtype T::*, QkvLayout T::*, MaskType T::*, KernelType T::*,
                            TileScheduler T::*, MultiCtasKvMode T::*, SparseType T::*,
                            std::optional<Dtype> RawRow::*, std::string_view MetaRow::*,
                            std::uint64_t MetaRow::*, Ignored, ReservedFlag, ArchColumn>;

}  // namespace

/// A member of the metadata's struct that this program knows.
struct MetaColumn {
  std::string_view name;
  Target target;
  std::uint32_t max = 0;  ///< of a number or an enum
  bool needed = false;
};

namespace {

// Every member of the published structs, 27 to 41 of them.
const std::array<MetaColumn, 47> kColumns = {{
    {"mDataTypeQ", &T::dtype_q, 0, true},
    {"mDataTypeKv", &RawRow::dtype_kv},
    {"mDataTypeK", &RawRow::dtype_k},
    {"mDataTypeV", &RawRow::dtype_v},
    {"mDataTypeQkReinterpret", &RawRow::qk_reinterpret},
    {"mDataTypeO", &T::dtype_o, 0, true},
    {"mTileSizeQ", &T::tile_q, 4096, true},
    {"mTileSizeKv", &T::tile_kv, 4096, true},
    {"mStepQ", &T::step_q, 4096, true},
    {"mStepKv", &T::step_kv, 4096, true},
    {"mHeadDimPerCtaV", &T::head_dim_per_cta_v, 8192, true},
    {"mHeadDimQk", &T::head_dim_qk, 8192, true},
    {"mHeadDimV", &T::head_dim_vo, 8192, true},
    {"mSM", ArchColumn{}, 0, true},
    {"mCubin", Ignored{}},
    {"mCubinSize", &MetaRow::cubin_size, 0xffffffff},
    {"mFuncName", &MetaRow::name, 0, true},
    {"mSharedMemBytes", &T::smem, 1 << 20, true},
    {"mThreadsPerCTA", &T::threads, 1024, true},
    {"mQkvLayout", &T::qkv_layout, 3, true},
    {"mNumTokensPerPage", &T::page_size, 65535, true},
    {"mMaskType", &T::mask_type, 3, true},
    {"mKernelType", &T::kernel_type, 3, true},
    {"mMaxNumHeadsQPerKvInCta", &T::max_q_heads_per_cta, 4096},
    {"mTileScheduler", &T::scheduler, 1, true},
    {"mMultiCtasKvMode", &T::multi_ctas_kv_mode, 3, true},
    {"mNumEltsPerSageAttnBlkQ", &T::sage_block_q, 255},
    {"mNumEltsPerSageAttnBlkK", &T::sage_block_k, 255},
    {"mNumEltsPerSageAttnBlkP", &T::sage_block_p, 255},
    {"mNumEltsPerSageAttnBlkV", &T::sage_block_v, 255},
    {"mGroupsHeadsQ", &T::groups_heads_q, 0, true},
    {"mGroupsTokensHeadsQ", &T::groups_tokens_heads_q},
    {"mReuseSmemKForV", &T::reuse_smem_k_for_v},
    {"m2CtaMma", &T::two_cta_mma},
    {"mSparseMla", &T::sparse_type, 1},
    {"mSparseAttn", &T::sparse_type, 2},
    {"mSkipsSoftmaxWhenPossible", &T::skip_softmax},
    {"mReserved", ReservedFlag{}},
    {"mReserved1", ReservedFlag{}},
    {"mReserved2", ReservedFlag{}},
    {"mFp16Softmax", &T::fp16_softmax},
    {"mUsesSpcompress", &T::spcompress},
    {"mEnablesBf16QFp8KvKOnlyTransform", &T::k_only_transform},
    {"mSeparateTransformedKv", &T::separate_transformed_kv},
    {"mFusesDsv4InvRopeFp8Quant", &T::fuses_inv_rope_fp8_quant},
    {"mUsesDsv4Ue8m0ScaleO", &T::ue8m0_scale_o},
    {"sha256", &MetaRow::digest, 0, true},
}};

/// Puts a value where its column says; false if the value is not one for it.
class Assigner {
 public:
  Assigner(RawRow& raw, const MetaValue& value, std::uint32_t max)
      : raw_(raw), value_(value), max_(max) {}

  template <class Member>
  bool operator()(Member T::*member) const {
    Member& out = raw_.row.traits.*member;
    if constexpr (std::is_same_v<Member, bool>) {
      return put(parse_meta_flag(value_), out);
    } else if constexpr (std::is_same_v<Member, Dtype>) {
      return put(parse_meta_dtype(value_), out);
    } else {
      const std::optional<std::uint64_t> number = parse_meta_count(value_, max_);
      if (number) out = static_cast<Member>(*number);
      return number.has_value();
    }
  }
  bool operator()(std::optional<Dtype> RawRow::*member) const {
    raw_.*member = parse_meta_dtype(value_);
    return (raw_.*member).has_value();
  }
  bool operator()(std::string_view MetaRow::*member) const {
    raw_.row.*member = value_.text;
    return value_.kind == MetaValue::Kind::kString;
  }
  bool operator()(std::uint64_t MetaRow::*member) const {
    return put(parse_meta_number(value_), raw_.row.*member);
  }
  bool operator()(Ignored) const { return true; }
  bool operator()(ReservedFlag) const {
    const std::optional<std::uint64_t> number = parse_meta_count(value_, 0xffffffff);
    raw_.row.reserved_set |= number.value_or(0) != 0;
    return number.has_value();
  }
  bool operator()(ArchColumn) const { return put(parse_meta_arch(value_), raw_.row.traits.arch); }

 private:
  template <class Value>
  static bool put(const std::optional<Value>& value, Value& out) {
    if (value) out = *value;
    return value.has_value();
  }

  RawRow& raw_;
  const MetaValue& value_;
  std::uint32_t max_;
};

bool ends_a_word(std::string_view name, std::size_t end) {
  return end == name.size() || name[end] < '0' || name[end] > '9';
}

/// "P128" as a part of a kernel's name: a page of 128 tokens that was compiled in.
bool names_page_128(std::string_view name) {
  const std::size_t at = name.find("P128");
  return at != std::string_view::npos && ends_a_word(name, at + 4);
}

/// What follows from several columns.
MetaRow finish(const RawRow& raw) {
  MetaRow row = raw.row;
  T& traits = row.traits;
  const Dtype kv = raw.dtype_kv.value_or(Dtype::kUnknown);
  traits.dtype_k = raw.dtype_k.value_or(kv);
  traits.dtype_v = raw.dtype_v.value_or(kv);
  if (raw.dtype_k && raw.dtype_v && raw.dtype_kv) {
    const Dtype common = traits.dtype_k == traits.dtype_v ? traits.dtype_k : Dtype::kUnknown;
    row.kv_type_differs = kv != common;
  }
  if (raw.qk_reinterpret && *raw.qk_reinterpret != traits.dtype_q) {
    // Q and K are bytes of another type: the columns count elements of mDataTypeQ.
    const std::uint32_t bits = traits.head_dim_qk * dtype_bits(traits.dtype_q);
    const std::uint32_t true_bits = dtype_bits(*raw.qk_reinterpret);
    if (true_bits != 0) traits.head_dim_qk = static_cast<std::uint16_t>(bits / true_bits);
    traits.dtype_q = *raw.qk_reinterpret;
    traits.dtype_k = *raw.qk_reinterpret;
  }
  traits.dynamic_page = traits.page_size == 128 && !names_page_128(row.name);
  return row;
}

const MetaColumn* find_column(std::string_view name) {
  const auto found = std::find_if(kColumns.begin(), kColumns.end(),
                                  [&](const MetaColumn& column) { return column.name == name; });
  return found == kColumns.end() ? nullptr : &*found;
}

bool has_column(const MetaTable& table, std::string_view name) {
  return std::find(table.columns.begin(), table.columns.end(), name) != table.columns.end();
}

}  // namespace

bool is_fmha_table(const MetaTable& table) {
  return has_column(table, "mFuncName") && has_column(table, "sha256") &&
         has_column(table, "mHeadDimQk");
}

Result<MetaRowReader> MetaRowReader::create(const MetaTable& table, std::string_view file) {
  MetaRowReader reader(table, file);
  std::vector<const MetaColumn*>& columns = reader.columns_;
  for (const std::string_view name : table.columns) {
    const MetaColumn* column = find_column(name);
    if (column == nullptr) {
      return fail(
          StatusCode::kManifestInvalid,
          "{}: struct {} has a column this program does not know: {} (number {} of {}); a newer "
          "Cubist may know it",
          file, table.struct_name, shown(name), columns.size() + 1, table.columns.size());
    }
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
      return fail(StatusCode::kManifestInvalid, "{}: struct {} has two columns {}", file,
                  table.struct_name, name);
    }
    columns.push_back(column);
  }
  for (const MetaColumn& column : kColumns) {
    if (!column.needed || has_column(table, column.name)) continue;
    return fail(StatusCode::kManifestInvalid, "{}: struct {} lacks the column {}", file,
                table.struct_name, column.name);
  }
  if (!has_column(table, "mDataTypeKv") &&
      !(has_column(table, "mDataTypeK") && has_column(table, "mDataTypeV"))) {
    return fail(StatusCode::kManifestInvalid,
                "{}: struct {} lacks the column mDataTypeKv (or mDataTypeK and mDataTypeV)", file,
                table.struct_name);
  }
  return reader;
}

Result<MetaRow> MetaRowReader::read(std::size_t row) const {
  RawRow raw;
  raw.row.line = table_->lines[row];
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const MetaValue& value = table_->value(row, i);
    if (std::visit(Assigner(raw, value, columns_[i]->max), columns_[i]->target)) continue;
    return fail(StatusCode::kManifestInvalid, "{}:{}: {} of row {} is {}: not a value for it",
                file_, raw.row.line, columns_[i]->name, row, shown(value.text));
  }
  return finish(raw);
}

}  // namespace cubist
