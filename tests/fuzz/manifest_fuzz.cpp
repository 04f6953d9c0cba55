#include <string_view>

#include "base/file.h"
#include "check.h"
#include "manifest/json_events.h"
#include "manifest/parse.h"
#include "manifest/validate.h"
#include "manifest/write.h"

namespace {

/// What a parser makes of a text; false: it refuses it.
template <class Parse>
bool made_by(Parse parse, const std::string& text, cubist::Manifest& manifest) {
  cubist::ManifestReader reader("fuzz.json");
  if (!parse(text, reader)) return false;
  manifest = reader.take_manifest();
  return true;
}

void check_parsers(const std::string& text) {
  cubist::Manifest fast;
  cubist::Manifest other;
  if (!made_by(cubist::read_json, text, fast)) return;
  FUZZ_CHECK(made_by(cubist::explain_json, text, other));
  FUZZ_CHECK(fast == other);
}

}  // namespace

/// What the fast parser takes, the other takes, and makes the same of it. Any text gives an error
/// with the right code, or a manifest that keeps its rules and survives being written and read
/// again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  check_parsers(text);
  text.reserve(size + cubist::kRoomBehindText);  // read where it lies
  check_parsers(text);
  const auto manifest = cubist::parse_manifest(text, "fuzz.json");
  if (!manifest) {
    FUZZ_CHECK(manifest.error().code() == cubist::StatusCode::kManifestInvalid);
    FUZZ_CHECK(manifest.error().message().starts_with("fuzz.json: "));
    FUZZ_CHECK(manifest.error().message().size() < 4096);
    return 0;
  }
  FUZZ_CHECK(cubist::validate_manifest(*manifest).has_value());
  const auto again = cubist::parse_manifest(cubist::write_manifest(*manifest), "again.json");
  FUZZ_CHECK(again.has_value() && *again == *manifest);
  return 0;
}
