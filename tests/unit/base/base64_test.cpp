#include "base/base64.h"

#include "support/catch.h"

namespace cubist {
namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

TEST_CASE("the examples of RFC 4648 are written and read") {
  const std::pair<const char*, const char*> examples[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : examples) {
    CHECK(to_base64(bytes_of(plain)) == encoded);
    CHECK(parse_base64(encoded) == bytes_of(plain));
  }
}

TEST_CASE("every byte comes back") {
  std::vector<std::uint8_t> all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<std::uint8_t>(byte));
  CHECK(parse_base64(to_base64(all)) == all);
}

TEST_CASE("a text that is not the one text of its bytes is no base64") {
  for (const char* bad : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==\n", " Zg==", "Zm9v====", "====",
                          "=", "Z===", "Zg==Zg==", "Zm-v", "Zm_v", "Zm9\xff"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_base64(bad));
  }
}

}  // namespace
}  // namespace cubist
