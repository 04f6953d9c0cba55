// The C++ layer over the C API: ownership, exceptions.

#include "cubist/cubist.hpp"

#include "support/catch.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"
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
  CHECK(selection.output().rank == 3);
  CHECK(moved.select(std::vector<cubist_attention_problem>(2, small_problem()), CUBIST_DEVICE_INIT)
            .size() == 2);
  CHECK(moved.workspace_bound(small_problem(), CUBIST_DEVICE_INIT).size_bytes >=
        selection.workspace().size_bytes);
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

TEST_CASE("kernels are prepared, scales fused and problems launched through the C++ layer") {
  cubist::test::fake_cuda().reset();
  const cubist::test::Environment libcuda(
      cubist::test::Environment::Values{{"CUBIST_LIBCUDA", cubist::test::fake_libcuda_path()}});
  const cubist::test::Scratch store;
  const cubist::Runtime runtime = open_runtime(store);
  cubist::test::fake_cuda().set_current(cubist::test::fake_cuda().create_context(0));
  const cubist::Selection selection = runtime.select(small_problem(), CUBIST_DEVICE_INIT);
  const cubist::Prepared prepared =
      runtime.prepare(std::vector<std::string>{selection.plan().kernel});
  REQUIRE(prepared.kernels.size() == 1);
  CHECK(prepared.kernels[0].sha256 == selection.plan().sha256);
  CHECK(prepared.report.num_loaded == 1);
  float out[2] = {0, 0};
  cubist_scales scales = CUBIST_SCALES_INIT;
  scales.o_scale = 0.5F;
  scales.out_bmm1_scale_log2 = &out[0];
  scales.out_bmm2_scale = &out[1];
  runtime.fuse_scales(small_problem(), scales);
  CHECK(out[1] == 0.5F);
  const cubist_attention_args nothing = CUBIST_ATTENTION_ARGS_INIT;
  CHECK_THROWS_AS(runtime.launch(small_problem(), nothing), cubist::Exception);
  CHECK_THROWS_AS(selection.check_call(nothing), cubist::Exception);
  CHECK_THROWS_AS(selection.output_scale(), cubist::Exception);
}
