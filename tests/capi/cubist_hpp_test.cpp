// The C++ layer over the C API: ownership, exceptions.

#include "cubist/cubist.hpp"

#include "support/catch.h"
#include "support/scratch.h"

namespace {

cubist::Runtime open_runtime(const cubist::test::Scratch& store) {
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  options.store_dir = store.path().c_str();
  options.offline = 1;
  return cubist::Runtime({CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"}, options);
}

cubist_attention_problem small_problem() {
  cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
  problem.num_q_heads = 32;
  return problem;
}

}  // namespace

TEST_CASE("a runtime selects and outlives its move") {
  const cubist::test::Scratch store;
  cubist::Runtime runtime = open_runtime(store);
  cubist::Runtime moved = std::move(runtime);
  CHECK(runtime.get() == nullptr);
  cubist::Selection selection = moved.select(small_problem(), CUBIST_DEVICE_INIT);
  moved = open_runtime(store);  // the first one lives on behind the selection
  CHECK(selection.num_plans() >= 1);
  CHECK(std::string(selection.plan().arch) == "sm_90a");
  CHECK_FALSE(selection.explain().empty());
  CHECK(selection.workspace().alignment == 256);
  selection.fetch();
  CHECK(moved.info().num_kernels > 0);
}

TEST_CASE("a failure is an exception with status and message") {
  const cubist::test::Scratch store;
  const cubist::Runtime runtime = open_runtime(store);
  cubist_attention_problem problem = small_problem();
  problem.head_dim_qk = 96;
  try {
    runtime.select(problem, CUBIST_DEVICE_INIT);
    FAIL("nothing was thrown");
  } catch (const cubist::Exception& error) {
    CHECK(error.status() == CUBIST_STATUS_UNSUPPORTED);
    CHECK(std::string(error.what()).size() > 10);
  }
}
