#include <string>
#include <type_traits>
#include <variant>

#include "base/file.h"
#include "manifest/manifest_keys.h"
#include "manifest/parse.h"
#include "manifest/trait_fields.h"
#include "manifest/words.h"
#include "manifest/write.h"
#include "support/catch.h"

namespace cubist {
namespace {

std::string source_file(const std::string& path) {
  return read_text_file(std::string(CUBIST_SOURCE_DIR) + "/" + path, kMaxManifestBytes).value();
}

/// The one JSON block of FORMAT.md.
std::string example() {
  const std::string text = source_file("manifests/FORMAT.md");
  const std::string fence = "```json\n";
  const std::size_t start = text.find(fence) + fence.size();
  return text.substr(start, text.find("```", start) - start);
}

TEST_CASE("the specification's example is read, and written as it stands there") {
  const auto manifest = parse_manifest(example(), "FORMAT.md");
  REQUIRE(manifest);
  CHECK(write_manifest(*manifest) == example());
}

TEST_CASE("every key of the reader stands in the specification and in the schema") {
  const std::string format = source_file("manifests/FORMAT.md");
  const std::string schema = source_file("manifests/schema.json");
  const auto check = [&](std::string_view key) {
    INFO(key);
    CHECK(format.find("`" + std::string(key) + "`") != std::string::npos);
    CHECK(schema.find("\"" + std::string(key) + "\": ") != std::string::npos);
  };
  for (const std::string_view key : kRootKeys) check(key);
  for (const std::string_view key : kPackKeys) check(key);
  for (const std::string_view key : kSourceKeys) check(key);
  for (const std::string_view key : kKernelKeys) check(key);
  for (const TraitField& field : trait_fields()) check(field.key);
}

/// The words of the field's enum, "a, b or c"; empty if it has none.
std::string allowed_words(const TraitField& field) {
  return std::visit(
      [](auto member) -> std::string {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, BothKv>) {
          return word_list<Dtype>();
        } else {
          using Value = std::remove_cvref_t<decltype(std::declval<KernelTraits>().*member)>;
          if constexpr (std::is_enum_v<Value>) return word_list<Value>();
          return {};
        }
      },
      field.member);
}

TEST_CASE("every word of an enum stands in the specification and in the schema") {
  const std::string format = source_file("manifests/FORMAT.md");
  const std::string schema = source_file("manifests/schema.json");
  for (const TraitField& field : trait_fields()) {
    std::string words = allowed_words(field);
    while (!words.empty()) {
      std::size_t end = words.find_first_of(", ");
      std::string word = words.substr(0, end);
      words = end == std::string::npos ? "" : words.substr(words.find_first_not_of(", ", end));
      if (word == "or" || word == "generation" || word == "spec_decoding") continue;
      INFO(field.key << " " << word);
      CHECK(format.find(word) != std::string::npos);
      CHECK(schema.find("\"" + word + "\"") != std::string::npos);
    }
  }
}

TEST_CASE("the shipped manifests are what the writer makes of them") {
  for (const char* name : {"flashinfer-0.6.13", "flashinfer-0.6.8"}) {
    const std::string text = source_file(std::string("manifests/") + name + ".json");
    const auto manifest = parse_manifest(text, name);
    REQUIRE(manifest);
    CHECK(write_manifest(*manifest) == text);
  }
}

TEST_CASE("the shipped manifests hold every kernel of their release") {
  const auto count = [](const char* name) {
    const auto manifest = parse_manifest(source_file(std::string("manifests/") + name), name);
    REQUIRE(manifest);
    std::vector<std::size_t> counts;
    for (const Pack& pack : manifest->packs) counts.push_back(pack.kernels.size());
    return counts;
  };
  CHECK(count("flashinfer-0.6.13.json") == std::vector<std::size_t>{13452});
  CHECK(count("flashinfer-0.6.8.json") == std::vector<std::size_t>{8700, 64});
}

}  // namespace
}  // namespace cubist
