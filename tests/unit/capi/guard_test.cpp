#include "capi/guard.h"

#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/catch.h"

using namespace cubist;
using namespace cubist::capi;

TEST_CASE("a failure becomes its code and the thread's message") {
  CHECK(guard([]() -> Status { return fail(StatusCode::kIo, "disk full"); }) == CUBIST_STATUS_IO);
  CHECK(std::string(last_error_message()) == "disk full");
  CHECK(guard([]() -> Status { return {}; }) == CUBIST_STATUS_OK);
  CHECK(std::string(last_error_message()).empty());
}

TEST_CASE("nothing that is thrown leaves") {
  CHECK(guard([]() -> Status { throw std::bad_alloc(); }) == CUBIST_STATUS_OUT_OF_MEMORY);
  CHECK(std::string(last_error_message()) == "out of memory");
  CHECK(guard([]() -> Status { throw std::runtime_error("a stray"); }) == CUBIST_STATUS_INTERNAL);
  CHECK(std::string(last_error_message()) == "a stray");
  CHECK(guard([]() -> Status { throw 7; }) == CUBIST_STATUS_INTERNAL);
}

TEST_CASE("messages are per thread") {
  CHECK(guard([]() -> Status { return fail(StatusCode::kIo, "mine"); }) == CUBIST_STATUS_IO);
  std::string others;
  std::thread([&] { others = last_error_message(); }).join();
  CHECK(others.empty());
  CHECK(std::string(last_error_message()) == "mine");
}
