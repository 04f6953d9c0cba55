#include <algorithm>
#include <string_view>

#include "check.h"
#include "trust/signature.h"

using namespace cubist;
using namespace cubist::trust;

namespace {

// The key and text of the seed "good" (seeds.cpp).
constexpr std::string_view kKey = "RWQiHRTX8YYDIKv7T7H1s4E+s5DJtso/DIEQgxbueekeAFHieBakGFi7";
constexpr std::string_view kText = "signed text\n";
constexpr std::string_view kComment = "a fixed comment";

bool is_visible(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
}

void check_key(std::string_view text) {
  const auto key = parse_public_key(text, "fuzz.pub");
  if (!key) {
    FUZZ_CHECK(key.error().code() == StatusCode::kInvalidArgument);
    FUZZ_CHECK(key.error().message().starts_with("fuzz.pub: "));
    FUZZ_CHECK(is_visible(key.error().message()));
    return;
  }
  FUZZ_CHECK(key->text().size() == 56);
  FUZZ_CHECK(*parse_public_key(key->text(), "fuzz.pub") == *key);
}

/// Nobody but the holder of the secret key can make another signature that is accepted.
void check_signature(std::string_view text) {
  static const PublicKey key = *parse_public_key(kKey, "seed");
  const auto parsed = parse_signature(text, "fuzz.minisig");
  const auto accepted = check_signed(
      {reinterpret_cast<const std::uint8_t*>(kText.data()), kText.size()}, text, "fuzz", {&key, 1});
  if (!parsed) {
    FUZZ_CHECK(parsed.error().code() == StatusCode::kUntrusted);
    FUZZ_CHECK(is_visible(parsed.error().message()));
    FUZZ_CHECK(!accepted);
    return;
  }
  FUZZ_CHECK(is_visible(parsed->trusted_comment));
  if (!accepted) {
    FUZZ_CHECK(accepted.error().code() == StatusCode::kUntrusted);
    return;
  }
  FUZZ_CHECK(accepted->key == key);
  FUZZ_CHECK(accepted->trusted_comment == kComment);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_key(text);
  check_signature(text);
  return 0;
}
