// cubist_runtime_prepare by name, hash, selection and working set; cubist_scales_fuse; handles that
// are gone.

#include <fstream>
#include <string>
#include <vector>

#include "rig.h"

namespace {

using Catch::Matchers::Contains;
using cubist::test::CRig;
using cubist::test::fake_cuda;

struct Told {
  std::string kernel;
  std::string sha256;
  int32_t state = -1;
  cubist_status status = -1;
  double milliseconds = -1;
};

void remember(const cubist_prepared_kernel* kernel, void* told) {
  static_cast<std::vector<Told>*>(told)->push_back(
      {kernel->kernel, kernel->sha256, kernel->state, kernel->status, kernel->milliseconds});
}

cubist_plan_info plan_of(cubist_selection* selection) {
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  REQUIRE(cubist_selection_get_plan(selection, 0, &plan) == CUBIST_STATUS_OK);
  return plan;
}

cubist_prepare_options telling(std::vector<Told>& told) {
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  options.on_kernel = remember;
  options.user_data = &told;
  return options;
}

}  // namespace

TEST_CASE("kernels are prepared by name and by hash, each once, and then are present") {
  CRig rig;
  const cubist_plan_info plan = plan_of(rig.selection);
  const char* names[] = {plan.kernel, plan.sha256, "cubist_lse_sm90a"};
  std::vector<Told> told;
  cubist_prepare_options options = telling(told);
  options.kernels = names;
  options.num_kernels = 3;
  cubist_prepare_report report = CUBIST_PREPARE_REPORT_INIT;
  REQUIRE(cubist_runtime_prepare(rig.runtime, &options, &report) == CUBIST_STATUS_OK);
  CHECK(report.num_kernels == 2);
  CHECK(report.num_loaded == 2);
  CHECK(report.num_present == 0);
  CHECK(report.num_threads >= 1);
  CHECK(report.milliseconds > 0);
  CHECK(report.fetch_milliseconds > 0);  // the store was empty
  REQUIRE(told.size() == 2);
  CHECK(told[0].kernel == plan.kernel);
  CHECK(told[0].sha256 == plan.sha256);
  CHECK(told[0].state == CUBIST_PREPARED_LOADED);
  CHECK(told[0].milliseconds > 0);
  CHECK(told[1].kernel == "cubist_lse_sm90a");

  REQUIRE(cubist_runtime_prepare(rig.runtime, &options, &report) == CUBIST_STATUS_OK);
  CHECK(report.num_loaded == 0);
  CHECK(report.num_present == 2);
  CHECK(fake_cuda().count("cuModuleLoadData") == 2);
}

TEST_CASE("with nothing named, every kernel that the device can run is prepared, on threads") {
  CRig rig;
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  options.num_threads = 4;
  cubist_prepare_report report = CUBIST_PREPARE_REPORT_INIT;
  REQUIRE(cubist_runtime_prepare(rig.runtime, &options, &report) == CUBIST_STATUS_OK);
  CHECK(report.num_kernels > 40);
  CHECK(report.num_loaded == report.num_kernels);
  CHECK(report.num_threads <= 4);
  CHECK(fake_cuda().leaks().modules == static_cast<int>(report.num_loaded));
  CHECK(fake_cuda().leaks().context_depth == 1);
  cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
  REQUIRE(cubist_runtime_get_info(rig.runtime, &info) == CUBIST_STATUS_OK);
  CHECK(info.loads == report.num_loaded);
}

TEST_CASE("a prepared selection is launched into a capture") {
  CRig rig;
  const cubist::cuda::CUstream stream = fake_cuda().create_stream();
  fake_cuda().begin_capture(stream);
  CHECK(cubist_selection_launch(rig.selection, &rig.args, stream) == CUBIST_STATUS_CAPTURE);
  const std::string message = cubist_last_error_message();
  CHECK_THAT(message, Contains(plan_of(rig.selection).kernel) && Contains("prepare"));
  CHECK(fake_cuda().end_capture(stream));

  cubist_selection* selections[] = {rig.selection};
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  options.selections = selections;
  options.num_selections = 1;
  REQUIRE(cubist_runtime_prepare(rig.runtime, &options, nullptr) == CUBIST_STATUS_OK);
  fake_cuda().begin_capture(stream);
  CHECK(cubist_selection_launch(rig.selection, &rig.args, stream) == CUBIST_STATUS_OK);
  CHECK(cubist_runtime_launch(rig.runtime, &rig.problem, nullptr, &rig.args, stream) ==
        CUBIST_STATUS_OK);
  CHECK(fake_cuda().end_capture(stream));
  CHECK(rig.output_is_untouched());  // captured, not run
}

TEST_CASE("the kernels of a working set's file are prepared") {
  CRig rig;
  const cubist_plan_info plan = plan_of(rig.selection);
  const cubist::test::Scratch folder;
  const std::string path = folder / "set.json";
  const auto write = [&](const std::string& sha256) {
    std::ofstream(path) << R"({"schema":"cubist.working_set","schema_version":1,)"
                        << R"("manifests":["cubist-decode"],"kernels":[{"name":")" << plan.kernel
                        << R"(","pack":"cubist-decode","sha256":")" << sha256 << R"(","size":)"
                        << plan.size_bytes << "}]}";
  };
  write(plan.sha256);
  std::vector<Told> told;
  cubist_prepare_options options = telling(told);
  options.working_set = path.c_str();
  INFO(cubist_last_error_message());
  REQUIRE(cubist_runtime_prepare(rig.runtime, &options, nullptr) == CUBIST_STATUS_OK);
  REQUIRE(told.size() == 1);
  CHECK(told[0].sha256 == plan.sha256);
  write(std::string(64, 'a'));
  CHECK(cubist_runtime_prepare(rig.runtime, &options, nullptr) == CUBIST_STATUS_NOT_FOUND);
  CHECK_THAT(std::string(cubist_last_error_message()), Contains(path));
}

TEST_CASE("a kernel that fails is told of, and the others are loaded") {
  CRig rig;
  const char* names[] = {"cubist_lse_sm100f", "cubist_lse_sm90a"};
  std::vector<Told> told;
  cubist_prepare_options options = telling(told);
  options.kernels = names;
  options.num_kernels = 2;
  cubist_prepare_report report = CUBIST_PREPARE_REPORT_INIT;
  CHECK(cubist_runtime_prepare(rig.runtime, &options, &report) == CUBIST_STATUS_DEVICE_MISMATCH);
  CHECK_THAT(std::string(cubist_last_error_message()), Contains("'cubist_lse_sm100f'"));
  CHECK(report.num_failed == 1);
  CHECK(report.num_loaded == 1);
  REQUIRE(told.size() == 2);
  CHECK(told[0].state == CUBIST_PREPARED_FAILED);
  CHECK(told[0].status == CUBIST_STATUS_DEVICE_MISMATCH);
  CHECK(told[1].state == CUBIST_PREPARED_LOADED);
}

TEST_CASE("without a context or a driver prepare says so, and fetches nothing") {
  CRig rig;
  fake_cuda().set_current(nullptr);
  const cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  CHECK(cubist_runtime_prepare(rig.runtime, &options, nullptr) == CUBIST_STATUS_DRIVER_ERROR);
  CHECK_THAT(std::string(cubist_last_error_message()), Contains("cuCtxSetCurrent"));
  cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
  REQUIRE(cubist_runtime_get_info(rig.runtime, &info) == CUBIST_STATUS_OK);
  CHECK(info.loads == 0);
}

TEST_CASE("host scales, fused pointers and the fuse kernel give the same bits") {
  CRig rig;
  float scalars[7] = {0.37F, 1.0F, 0.081F, 1.0F, 1.7F, -1.0F, -1.0F};
  cubist_scales scales = CUBIST_SCALES_INIT;
  scales.q_scale_device = &scalars[0];
  scales.sm_scale_device = &scalars[2];
  scales.o_scale_device = &scalars[4];
  scales.out_bmm1_scale_log2 = &scalars[5];
  scales.out_bmm2_scale = &scalars[6];
  REQUIRE(cubist_scales_fuse(rig.runtime, &rig.problem, &scales, nullptr) == CUBIST_STATUS_OK);
  const float bmm1 = 0.37F * 1.0F * 0.081F;
  CHECK(scalars[5] == static_cast<float>(static_cast<double>(bmm1) * 1.4426950408889634));
  CHECK(scalars[6] == 1.7F);

  // Left out, sm_scale is 1/sqrt(head_dim_qk).
  scales.sm_scale_device = nullptr;
  REQUIRE(cubist_scales_fuse(rig.runtime, &rig.problem, &scales, nullptr) == CUBIST_STATUS_OK);
  CHECK(scalars[5] == static_cast<float>(static_cast<double>(0.37F * 0.125F) * 1.4426950408889634));
}

TEST_CASE("the fuse kernel is found although its manifest was not named") {
  CRig rig;
  const char* manifests[] = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"};
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  options.manifests = manifests;
  options.num_manifests = 1;
  cubist_runtime* runtime = nullptr;
  REQUIRE(cubist_runtime_open(&options, &runtime) == CUBIST_STATUS_OK);
  float out[2] = {-1, -1};
  cubist_scales scales = CUBIST_SCALES_INIT;
  scales.o_scale = 3.0F;
  scales.out_bmm1_scale_log2 = &out[0];
  scales.out_bmm2_scale = &out[1];
  CHECK(cubist_scales_fuse(runtime, &rig.problem, &scales, nullptr) == CUBIST_STATUS_OK);
  CHECK(out[1] == 3.0F);
  CHECK(cubist_runtime_destroy(runtime) == CUBIST_STATUS_OK);
}

TEST_CASE("destroyed handles are errors in every function that takes one") {
  CRig rig;
  cubist_selection* selection = nullptr;
  REQUIRE(cubist_runtime_select(rig.runtime, &rig.problem, &rig.device, &selection) ==
          CUBIST_STATUS_OK);
  REQUIRE(cubist_selection_destroy(selection) == CUBIST_STATUS_OK);
  uint32_t count = 0;
  const char* text = nullptr;
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
  cubist_tensor_layout layout = CUBIST_TENSOR_LAYOUT_INIT;
  cubist_output_scale_info scale = CUBIST_OUTPUT_SCALE_INFO_INIT;
  for (const cubist_status status :
       {cubist_selection_destroy(selection), cubist_selection_get_num_plans(selection, &count),
        cubist_selection_get_plan(selection, 0, &plan), cubist_selection_explain(selection, &text),
        cubist_selection_fetch(selection), cubist_selection_get_workspace(selection, &workspace),
        cubist_selection_clear_workspace(selection, rig.args.workspace, rig.args.workspace_size,
                                         nullptr),
        cubist_selection_prepare(selection), cubist_selection_get_output(selection, &layout),
        cubist_selection_get_output_scale(selection, &scale),
        cubist_selection_launch(selection, &rig.args, nullptr),
        cubist_selection_check(selection, &rig.args, nullptr)}) {
    CHECK(status == CUBIST_STATUS_INVALID_ARGUMENT);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains("was destroyed already"));
  }

  cubist_runtime* runtime = nullptr;
  {
    CRig other;
    runtime = other.runtime;
  }
  cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  cubist_scales scales = CUBIST_SCALES_INIT;
  for (const cubist_status status :
       {cubist_runtime_destroy(runtime), cubist_runtime_get_info(runtime, &info),
        cubist_runtime_fetch(runtime, "k"), cubist_runtime_fetch_many(runtime, nullptr, 0),
        cubist_runtime_set_progress_callback(runtime, nullptr, nullptr),
        cubist_runtime_cancel(runtime), cubist_runtime_prepare(runtime, &options, nullptr),
        cubist_runtime_select(runtime, &rig.problem, &rig.device, &selection),
        cubist_runtime_select_many(runtime, &rig.problem, 1, &rig.device, &selection, nullptr),
        cubist_runtime_get_workspace_bound(runtime, &rig.problem, &rig.device, &workspace),
        cubist_runtime_launch(runtime, &rig.problem, &rig.device, &rig.args, nullptr),
        cubist_scales_fuse(runtime, &rig.problem, &scales, nullptr)}) {
    CHECK(status == CUBIST_STATUS_INVALID_ARGUMENT);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains("was destroyed already"));
  }
}
