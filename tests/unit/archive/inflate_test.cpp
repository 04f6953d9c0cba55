#include "archive/inflate.h"

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/zip_writer.h"

namespace cubist {
namespace {

InflateOutcome inflate(const std::string& packed, std::size_t size, std::string* text = nullptr) {
  std::vector<std::uint8_t> out(size);
  const std::span<const std::uint8_t> in(reinterpret_cast<const std::uint8_t*>(packed.data()),
                                         packed.size());
  const InflateOutcome outcome = inflate_exactly(in, out);
  if (text != nullptr) text->assign(out.begin(), out.end());
  return outcome;
}

TEST_CASE("a deflate stream fills exactly the bytes it is made of") {
  const std::string data = "some text, some text, some text";
  std::string text;
  CHECK(inflate(test::deflated(data), data.size(), &text) == InflateOutcome::kOk);
  CHECK(text == data);
  CHECK(inflate(test::deflated(""), 0) == InflateOutcome::kOk);
}

TEST_CASE("a deflate stream of any other kind is told apart") {
  const std::string packed = test::deflated("some text, some text, some text");
  CHECK(inflate(packed, 30) == InflateOutcome::kTooLong);
  CHECK(inflate(packed, 0) == InflateOutcome::kTooLong);
  CHECK(inflate(packed, 32) == InflateOutcome::kTooShort);
  CHECK(inflate(packed.substr(0, packed.size() - 1), 31) == InflateOutcome::kUnfinished);
  CHECK(inflate("", 0) == InflateOutcome::kUnfinished);
  CHECK(inflate(packed + "x", 31) == InflateOutcome::kTrailing);
  CHECK(inflate("\xff\xff\xff", 31) == InflateOutcome::kBroken);
}

TEST_CASE("every outcome has a description of its own") {
  CHECK(describe(InflateOutcome::kOk) == "ok");
  CHECK(describe(InflateOutcome::kBroken) != describe(InflateOutcome::kUnfinished));
}

}  // namespace
}  // namespace cubist
