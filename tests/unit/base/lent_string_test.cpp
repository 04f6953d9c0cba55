#include "base/lent_string.h"

#include <utility>

#include "support/catch.h"

namespace cubist {
namespace {

TEST_CASE("a text owns what it is given, and compares and joins like a string") {
  std::string source = "kernel";
  LentString text = source;
  source[0] = 'K';
  CHECK(text == "kernel");
  CHECK(text != source);
  CHECK("kernel" == text);
  CHECK(text < LentString("l"));
  CHECK(text + ".cubin" == "kernel.cubin");
  CHECK("a/" + text == "a/kernel");
  CHECK(text.c_str()[text.size()] == '\0');
  text += text;
  CHECK(text == "kernelkernel");
  CHECK(text.find("lk") == 5);
  text = text;
  CHECK(text.size() == 12);
  text = "";
  CHECK(text.empty());
  CHECK(*LentString().c_str() == '\0');
}

TEST_CASE("a lent text lies where it was lent; copies and what is moved from it own theirs") {
  std::string lender = "kernel";
  LentString lent;
  lent.lend(lender);
  CHECK(lent.c_str() == lender.c_str());
  const LentString copy = lent;
  LentString assigned = "other";
  assigned = lent;
  const LentString moved = std::move(lent);
  lender = "gone..";
  CHECK(copy == "kernel");
  CHECK(assigned == "kernel");
  CHECK(moved == "kernel");
}

TEST_CASE("moving an owned text moves its bytes") {
  LentString text = std::string(100, 'x');
  const char* bytes = text.c_str();
  const LentString moved = std::move(text);
  CHECK(moved.c_str() == bytes);
}

}  // namespace
}  // namespace cubist
