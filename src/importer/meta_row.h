#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importer/meta_table.h"
#include "model/kernel_record.h"

namespace cubist {

struct MetaColumn;

/// A row of a metadata table in our words.
struct MetaRow {
  std::string_view name;
  std::string_view digest;  ///< as it is spelt; may be no digest at all
  KernelTraits traits;
  std::uint64_t cubin_size = 0;  ///< mCubinSize: 0 where the cubin is not part of the header
  bool reserved_set = false;     ///< a column without a known meaning holds something
  bool kv_type_differs = false;  ///< mDataTypeKv contradicts mDataTypeK and mDataTypeV
  std::uint32_t line = 0;
};

/// Reads rows of FMHA metadata: columns are found by the names of the struct's members, so their
/// order and number may be any of the published generations'.
class MetaRowReader {
 public:
  /// errors  kManifestInvalid: a column this program does not know, one that is needed and missing,
  /// or
  ///         one named twice
  static Result<MetaRowReader> create(const MetaTable& table, std::string_view file);

  /// errors  kManifestInvalid with line and column: a value of the wrong type or range
  Result<MetaRow> read(std::size_t row) const;

 private:
  MetaRowReader(const MetaTable& table, std::string_view file) : table_(&table), file_(file) {}

  const MetaTable* table_;
  std::string_view file_;
  std::vector<const MetaColumn*> columns_;
};

/// Whether a table describes FMHA kernels at all: its struct has a function name, a digest and head
/// dimensions. Tables of other kernels (GEMM) do not.
bool is_fmha_table(const MetaTable& table);

}  // namespace cubist
