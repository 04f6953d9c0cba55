#include "registry/environment_names.h"

#include "support/catch.h"

using cubist::unknown_environment_names;

TEST_CASE("variables of the tool's own prefix that mean nothing are named, others are not") {
  const char* const environment[] = {"PATH=/bin",
                                     "CUBIST_STORE=/s",
                                     "CUBIST_STOR=/s",
                                     "CUBIST_TEST_FAULTS=x",
                                     "CUBIST_STORE_DIR=/s",
                                     "CUBIST_FAKE_CUDA_FAIL=1",
                                     "NOT_CUBIST_STORE=x",
                                     "CUBIST_",
                                     nullptr};
  CHECK(unknown_environment_names(environment) ==
        std::vector<std::string>{"CUBIST_STOR", "CUBIST_STORE_DIR", "CUBIST_"});
  CHECK(unknown_environment_names(nullptr).empty());
}
