#include <string_view>

#include "check.h"
#include "importer/checksums.h"
#include "manifest/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = cubist::parse_checksums(text, "fuzz.txt");
  if (!lines) {
    FUZZ_CHECK(lines.error().code() == cubist::StatusCode::kManifestInvalid);
    FUZZ_CHECK(lines.error().message().starts_with("fuzz.txt:"));
    return 0;
  }
  for (std::size_t i = 0; i < lines->size(); ++i) {
    FUZZ_CHECK(cubist::path_problem((*lines)[i].path).empty());
    FUZZ_CHECK(i == 0 || (*lines)[i - 1].path < (*lines)[i].path);
  }
  return 0;
}
