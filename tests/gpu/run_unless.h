#pragma once

#include <cstdio>
#include <string>

#include "support/catch_runner.h"

namespace cubist::test {

/// The end of a GPU test's main: the tests, or exit code 77 with what keeps them from being run.
/// For the one file of a program that has main.
inline int run_unless(const std::string& reason, int argc, char** argv) {
  if (!reason.empty()) {
    std::fprintf(stderr, "skipped: %s\n", reason.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}

}  // namespace cubist::test
