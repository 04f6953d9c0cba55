#include <string_view>

#include "check.h"
#include "importer/meta_row.h"
#include "importer/meta_table.h"
#include "importer/name_check.h"

namespace cubist {
namespace {

void check_rows(const MetaTable& table) {
  const auto reader = MetaRowReader::create(table, "fuzz.h");
  if (!reader) {
    FUZZ_CHECK(reader.error().code() == StatusCode::kManifestInvalid);
    return;
  }
  FUZZ_CHECK(is_fmha_table(table));  // what the reader needs is more than what marks such a table
  for (std::size_t i = 0; i < table.num_rows(); ++i) {
    const auto row = reader->read(i);
    if (!row) {
      FUZZ_CHECK(row.error().code() == StatusCode::kManifestInvalid);
      continue;
    }
    FUZZ_CHECK(row->line >= 1);
    static_cast<void>(name_contradiction(row->name, row->traits));
  }
}

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tables = cubist::parse_meta_tables(text, "fuzz.h");
  if (!tables) {
    FUZZ_CHECK(tables.error().code() == cubist::StatusCode::kManifestInvalid);
    FUZZ_CHECK(tables.error().message().starts_with("fuzz.h:"));
    return 0;
  }
  for (const cubist::MetaTable& table : *tables) {
    FUZZ_CHECK(table.values.size() == table.num_rows() * table.columns.size());
    cubist::check_rows(table);
  }
  return 0;
}
