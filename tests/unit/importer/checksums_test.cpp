#include "importer/checksums.h"

#include <string>
#include <vector>

#include "support/catch.h"

namespace cubist {
namespace {

const std::string kA(64, 'a');
const std::string kB(64, 'b');

TEST_CASE("checksums are read as sha256sum writes them, sorted by path") {
  const std::string text = kB + "  z.cubin\r\n\n" + kA + " *include/h\n" + kA + "\ta.cubin";
  const auto lines = parse_checksums(text, "c");
  REQUIRE(lines);
  REQUIRE(lines->size() == 3);
  CHECK((*lines)[0].path == "a.cubin");
  CHECK((*lines)[1].path == "include/h");
  CHECK((*lines)[1].sha256.hex() == kA);
  CHECK((*lines)[2].path == "z.cubin");
  CHECK((*lines)[2].sha256.hex() == kB);
  CHECK(parse_checksums("", "c")->empty());
}

TEST_CASE("each broken line is refused with its number and its reason") {
  struct Liar {
    std::string text;
    const char* message;
  };
  const std::vector<Liar> liars = {
      {"x  a\n", "c:1: 'x  a' does not start with a SHA-256"},
      {kA + "  a\n" + kA.substr(1) + "  b\n", "c:2: '"},
      {kA + "\n", "c:1: no path behind the digest"},
      {kA + "  \n", "c:1: no path behind the digest"},
      {kA + "a.cubin\n", "c:1: no path behind the digest"},
      {kA + "  ../a\n", "c:1: the path '../a' holds a '.' or '..' part"},
      {kA + "  /a\n", "c:1: the path '/a' is an absolute path"},
      {kA + "  a\x1b[0m\n", "c:1: the path 'a\\x1b[0m' holds a control character"},
      {kA + "  a\\b\n", "c:1: the path 'a\\b' holds a backslash"},
      {kA + "  *\n", "c:1: the path '' is empty"},
      {kA + "  a\n" + kB + "  a\n", "c: 'a' is named twice"},
      {"<html>\n", "c:1: '<html>' does not start with a SHA-256"},
  };
  for (const Liar& liar : liars) {
    const auto lines = parse_checksums(liar.text, "c");
    INFO(liar.text);
    REQUIRE_FALSE(lines);
    CHECK(lines.error().code() == StatusCode::kManifestInvalid);
    CHECK(lines.error().message().substr(0, std::string(liar.message).size()) == liar.message);
  }
}

}  // namespace
}  // namespace cubist
