#include "manifest/json_events.h"

#include <optional>
#include <random>
#include <string>

#include "base/file.h"
#include "sample_manifest.h"
#include "support/catch.h"

namespace cubist {
namespace {

using test::replaced;
using test::sample_manifest;

/// What a parser makes of a text; nullopt: it refuses it.
template <class Parse>
std::optional<Manifest> made_by(Parse parse, const std::string& text) {
  ManifestReader reader("m.json");
  if (!parse(text, reader)) return std::nullopt;
  return reader.take_manifest();
}

/// What the fast parser refuses is the other's to judge (it takes a byte order mark).
void check_agreement(std::string text) {
  INFO(text);
  const std::optional<Manifest> made = made_by(read_json, text);
  text.reserve(text.size() + kRoomBehindText);
  CHECK(made == made_by(read_json, text));  // read where it lies
  if (made) CHECK(made == made_by(explain_json, text));
}

TEST_CASE("the fast parser takes only what the other takes, and makes the same of it") {
  const std::string text = sample_manifest();
  REQUIRE(made_by(read_json, text));
  REQUIRE(made_by(read_json, replaced(text, "kernel_a", "\\ud83d\\ude00")));
  check_agreement(text);
  for (const char* number : {"-0",
                             "0",
                             "00",
                             "+1",
                             "-1",
                             "1.0",
                             "1e3",
                             "1e400",
                             "0x10",
                             "NaN",
                             "64656 ",
                             "18446744073709551615",
                             "18446744073709551616",
                             "-9223372036854775809",
                             "true",
                             "null",
                             "\"64656\"",
                             "[]",
                             "{}",
                             ""}) {
    check_agreement(replaced(text, "64656", number));
  }
  for (const char* name :
       {"\\u0061", "\\ud83d\\ude00", "\\ud83d", "\\u0000", "\\q", "\\", "\n", "\x01", "\xff",
        "\xc3\xa9", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\"", "a\", \"name\": \"b"}) {
    check_agreement(replaced(text, "kernel_a", name));
  }
  for (const std::string& whole :
       {std::string(), std::string(" "), std::string("null"), "\xef\xbb\xbf" + text, text + " ",
        text + "x", text + text, text + std::string(1, '\0'), text.substr(0, text.size() - 1),
        replaced(text, ",", ",,"), replaced(text, ":", "::"), replaced(text, "{", "/* */ {"),
        replaced(text, "\"name\"", "'name'"), replaced(text, "\"name\"", "name"),
        std::string(5000, '['), std::string(5000, '{')}) {
    check_agreement(whole);
  }
}

TEST_CASE("the parsers agree on texts with bytes changed at random") {
  const std::string original = sample_manifest();
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "\"\\{}[]:,0123456789-+.eEtfn \n\t\x01\x80\xff/u";
  for (int round = 0; round < 5000; ++round) {
    std::string text = original;
    for (auto change = random() % 3; change < 3; ++change) {
      const std::size_t at = random() % text.size();
      if (random() % 2 != 0) {
        text[at] = kBytes[random() % kBytes.size()];
      } else {
        text.erase(at, random() % 4);
      }
    }
    check_agreement(text);
  }
}

}  // namespace
}  // namespace cubist
