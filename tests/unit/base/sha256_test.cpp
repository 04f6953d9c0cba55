#include "base/sha256.h"

#include <string_view>

#include "support/catch.h"

namespace {
std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
}  // namespace

TEST_CASE("sha256 gives the published test vectors") {  // FIPS 180-4 examples
  CHECK(cubist::sha256({}).hex() ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(cubist::sha256(as_bytes("abc")).hex() ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("hashing in pieces equals hashing at once") {
  cubist::Sha256 hasher;
  hasher.update(as_bytes("a"));
  hasher.update({});
  hasher.update(as_bytes("bc"));
  CHECK(hasher.finish() == cubist::sha256(as_bytes("abc")));
}

TEST_CASE("a digest is 64 hexadecimal digits, nothing less") {
  CHECK_FALSE(cubist::Sha256Digest::parse("").has_value());
  CHECK_FALSE(cubist::Sha256Digest::parse(std::string(63, 'a')).has_value());
  CHECK_FALSE(cubist::Sha256Digest::parse(std::string(64, 'g')).has_value());
  CHECK(cubist::Sha256Digest::parse(std::string(64, 'A'))->hex() == std::string(64, 'a'));
}
