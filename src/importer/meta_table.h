#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist {

/// One value of a row, as it is spelt. Text points into the header.
struct MetaValue {
  enum class Kind : std::uint8_t { kWord, kNumber, kString };
  Kind kind = Kind::kWord;
  std::string_view text;  ///< without the quotes of a string
};

/// A table of constants in a C++ header:
///
///   struct Info { int mTileSizeQ; const char* mFuncName; };
///   static const Info sInfos[] = {
///   { 128, "fmha..." },
///   };
struct MetaTable {
  std::string_view struct_name;
  std::string_view name;
  std::vector<std::string_view> columns;  ///< the struct's members, in order
  std::vector<MetaValue> values;          ///< row after row, columns.size() each
  std::vector<std::uint32_t> lines;       ///< line of the header a row starts on, from 1

  std::size_t num_rows() const { return lines.size(); }
  const MetaValue& value(std::size_t row, std::size_t column) const {
    return values[row * columns.size() + column];
  }
};

/// Finds every table whose struct is declared in the same text. Reads just enough C++ for that:
/// white space, comments and preprocessor lines are skipped, and so is whatever is neither struct
/// nor table. Time and memory grow with the text alone. The result points into `header`.
///
/// file    what messages call the header
/// errors  kManifestInvalid with file and line: a row with more or fewer values than its struct has
///         members, a declared size that is not the number of rows, a value that is no constant,
///         text that ends inside a comment, string, struct or table
Result<std::vector<MetaTable>> parse_meta_tables(std::string_view header, std::string_view file);

}  // namespace cubist
