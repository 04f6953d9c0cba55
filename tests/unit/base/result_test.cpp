#include "base/result.h"

#include <memory>

#include "support/catch.h"

using cubist::Error;
using cubist::fail;
using cubist::Result;
using cubist::Status;
using cubist::StatusCode;

namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(StatusCode::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  CUBIST_ASSIGN_OR_RETURN(const int once, half(value));
  CUBIST_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

Status check(int value) {
  CUBIST_RETURN_IF_ERROR(half(value));
  return {};
}

Result<std::unique_ptr<int>> boxed(int value) {
  CUBIST_ASSIGN_OR_RETURN(const int once, half(value));
  return std::make_unique<int>(once);
}

}  // namespace

TEST_CASE("errors travel through the macros with code and sentence") {
  CHECK(quarter(8).value() == 2);
  const auto failed = quarter(6);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == StatusCode::kInvalidArgument);
  CHECK(failed.error().message() == "3 is odd");
  CHECK(check(2));
  CHECK_FALSE(check(3));
  CHECK(**boxed(4) == 2);
}

TEST_CASE("context keeps the code and grows the sentence") {
  const Error error = Error(StatusCode::kIo, "disk full").with_context("install");
  CHECK(error.code() == StatusCode::kIo);
  CHECK(error.message() == "install: disk full");
}
