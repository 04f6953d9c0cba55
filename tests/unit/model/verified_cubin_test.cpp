#include "model/verified_cubin.h"

#include <string>

#include "support/catch.h"

using cubist::StatusCode;
using cubist::VerifiedCubin;

namespace {

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

const std::string kElf = std::string(
                             "\x7f"
                             "ELF") +
                         std::string(1000, 'x');

cubist::Error refuse(const std::string& found, std::size_t expected_size = kElf.size()) {
  auto result = VerifiedCubin::verify(bytes_of(found), cubist::sha256(bytes_of(kElf)),
                                      expected_size, "a.cubin");
  REQUIRE_FALSE(result);
  return std::move(result.error());
}

}  // namespace

TEST_CASE("verified bytes are the bytes that were hashed") {
  const auto cubin =
      VerifiedCubin::verify(bytes_of(kElf), cubist::sha256(bytes_of(kElf)), kElf.size(), "a.cubin");
  REQUIRE(cubin);
  CHECK(cubin->bytes().size() == kElf.size());
  CHECK(cubin->sha256() == cubist::sha256(cubin->bytes()));
}

TEST_CASE("what is not the wanted cubin is named for what it is") {
  struct Row {
    std::string found;
    const char* phrase;
  };
  std::string zero_tail = kElf;
  zero_tail.replace(400, zero_tail.size() - 400, zero_tail.size() - 400, '\0');
  std::string flipped = kElf;
  flipped[500] ^= 1;
  const Row rows[] = {
      {"", "empty"},
      {kElf.substr(0, 100), "truncated"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS"},
      {"\n <!DOCTYPE html><html>", "HTML"},
      {std::string(kElf.size(), 'q'), "no ELF"},
      {zero_tail, "ends in zeros"},
      {flipped, "other contents"},
      {kElf + "x", "1005 bytes"},
  };
  for (const Row& row : rows) {
    INFO(row.phrase);
    const cubist::Error error = refuse(row.found);
    CHECK(error.code() == StatusCode::kIntegrity);
    CHECK_THAT(error.message(), Catch::Contains(row.phrase));
    CHECK_THAT(error.message(), Catch::Contains("a.cubin"));
  }
}
