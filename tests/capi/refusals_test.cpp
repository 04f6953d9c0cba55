// What every exported function refuses: NULL for what it needs, a struct of another size, a handle
// that is none. A table, held against the list of exported symbols.

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "rig.h"

namespace {

using Catch::Matchers::Contains;
using cubist::test::CRig;

struct Refusal {
  std::string function;
  std::string phrase;  ///< of the message
  std::function<cubist_status(CRig&)> call;
};

/// A struct of its own INIT whose size is off by `by`.
template <class Struct>
Struct with_size(Struct value, int by) {
  value.struct_size = static_cast<uint32_t>(static_cast<int>(value.struct_size) + by);
  return value;
}

cubist_runtime* stale_runtime(CRig& rig) {
  return reinterpret_cast<cubist_runtime*>(rig.selection);
}
cubist_selection* stale_selection(CRig& rig) {
  return reinterpret_cast<cubist_selection*>(rig.runtime);
}

cubist_attention_problem problem_of_size(int by) {
  return with_size(cubist_attention_problem CUBIST_ATTENTION_PROBLEM_INIT, by);
}
cubist_device device_of_size(int by) { return with_size(cubist_device CUBIST_DEVICE_INIT, by); }
cubist_attention_args args_of_size(int by) {
  return with_size(cubist_attention_args CUBIST_ATTENTION_ARGS_INIT, by);
}

/// Functions that take nothing that could be wrong.
const std::vector<std::string> kNothingToRefuse = {"cubist_last_error_message",
                                                   "cubist_status_string", "cubist_version_number",
                                                   "cubist_version_string"};

std::vector<Refusal> selecting() {
  return {
      {"cubist_runtime_select", "runtime is NULL",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         return cubist_runtime_select(nullptr, &r.problem, &r.device, &out);
       }},
      {"cubist_runtime_select", "out_selection is NULL",
       [](CRig& r) { return cubist_runtime_select(r.runtime, &r.problem, &r.device, nullptr); }},
      {"cubist_runtime_select", "problem is NULL",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         return cubist_runtime_select(r.runtime, nullptr, &r.device, &out);
       }},
      {"cubist_runtime_select", "problem.struct_size",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         const auto problem = problem_of_size(8);
         return cubist_runtime_select(r.runtime, &problem, &r.device, &out);
       }},
      {"cubist_runtime_select", "device.struct_size",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         const auto device = device_of_size(-4);
         return cubist_runtime_select(r.runtime, &r.problem, &device, &out);
       }},
      {"cubist_runtime_select_many", "runtime is NULL",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         return cubist_runtime_select_many(nullptr, &r.problem, 1, &r.device, &out, nullptr);
       }},
      {"cubist_runtime_select_many", "problems is NULL",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         return cubist_runtime_select_many(r.runtime, nullptr, 1, &r.device, &out, nullptr);
       }},
      {"cubist_runtime_select_many", "out_selections is NULL",
       [](CRig& r) {
         return cubist_runtime_select_many(r.runtime, &r.problem, 1, &r.device, nullptr, nullptr);
       }},
      {"cubist_runtime_select_many", "device is NULL",
       [](CRig& r) {
         cubist_selection* out = nullptr;
         return cubist_runtime_select_many(r.runtime, &r.problem, 1, nullptr, &out, nullptr);
       }},
      {"cubist_runtime_select_many", "problems[1].struct_size",
       [](CRig& r) {
         cubist_selection* out[2] = {nullptr, nullptr};
         const cubist_attention_problem problems[] = {r.problem, problem_of_size(-1)};
         return cubist_runtime_select_many(r.runtime, problems, 2, &r.device, out, nullptr);
       }},
      {"cubist_runtime_get_workspace_bound", "runtime is NULL",
       [](CRig& r) {
         cubist_workspace_info out = CUBIST_WORKSPACE_INFO_INIT;
         return cubist_runtime_get_workspace_bound(nullptr, &r.problem, &r.device, &out);
       }},
      {"cubist_runtime_get_workspace_bound", "out_workspace is NULL",
       [](CRig& r) {
         return cubist_runtime_get_workspace_bound(r.runtime, &r.problem, &r.device, nullptr);
       }},
      {"cubist_runtime_get_workspace_bound", "largest is NULL",
       [](CRig& r) {
         cubist_workspace_info out = CUBIST_WORKSPACE_INFO_INIT;
         return cubist_runtime_get_workspace_bound(r.runtime, nullptr, &r.device, &out);
       }},
      {"cubist_runtime_get_workspace_bound", "device is NULL",
       [](CRig& r) {
         cubist_workspace_info out = CUBIST_WORKSPACE_INFO_INIT;
         return cubist_runtime_get_workspace_bound(r.runtime, &r.problem, nullptr, &out);
       }},
      {"cubist_runtime_get_workspace_bound", "out_workspace.struct_size",
       [](CRig& r) {
         auto out = with_size(cubist_workspace_info CUBIST_WORKSPACE_INFO_INIT, 8);
         return cubist_runtime_get_workspace_bound(r.runtime, &r.problem, &r.device, &out);
       }},
  };
}

std::vector<Refusal> of_runtimes() {
  return {
      {"cubist_device_count", "out_count is NULL",
       [](CRig&) { return cubist_device_count(nullptr); }},
      {"cubist_device_query", "out_device is NULL",
       [](CRig&) { return cubist_device_query(0, nullptr); }},
      {"cubist_device_query", "out_device.struct_size",
       [](CRig&) {
         auto device = device_of_size(1);
         return cubist_device_query(0, &device);
       }},
      {"cubist_log_set_callback", "min_level is 17",
       [](CRig&) { return cubist_log_set_callback(nullptr, nullptr, 17); }},
      {"cubist_runtime_open", "options is NULL",
       [](CRig&) {
         cubist_runtime* out = nullptr;
         return cubist_runtime_open(nullptr, &out);
       }},
      {"cubist_runtime_open", "out_runtime is NULL",
       [](CRig&) {
         const cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
         return cubist_runtime_open(&options, nullptr);
       }},
      {"cubist_runtime_open", "options.struct_size",
       [](CRig&) {
         cubist_runtime* out = nullptr;
         const auto options = with_size(cubist_runtime_options CUBIST_RUNTIME_OPTIONS_INIT, -8);
         return cubist_runtime_open(&options, &out);
       }},
      {"cubist_runtime_destroy", "never was one",
       [](CRig& r) { return cubist_runtime_destroy(stale_runtime(r)); }},
      {"cubist_runtime_get_info", "runtime is NULL",
       [](CRig&) {
         cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
         return cubist_runtime_get_info(nullptr, &info);
       }},
      {"cubist_runtime_get_info", "out_info is NULL",
       [](CRig& r) { return cubist_runtime_get_info(r.runtime, nullptr); }},
      {"cubist_runtime_get_info", "out_info.struct_size",
       [](CRig& r) {
         auto info = with_size(cubist_runtime_info CUBIST_RUNTIME_INFO_INIT, 4);
         return cubist_runtime_get_info(r.runtime, &info);
       }},
      {"cubist_runtime_fetch", "runtime is NULL",
       [](CRig&) { return cubist_runtime_fetch(nullptr, "k"); }},
      {"cubist_runtime_fetch", "kernel is NULL",
       [](CRig& r) { return cubist_runtime_fetch(r.runtime, nullptr); }},
      {"cubist_runtime_fetch_many", "runtime is NULL",
       [](CRig&) { return cubist_runtime_fetch_many(nullptr, nullptr, 0); }},
      {"cubist_runtime_fetch_many", "kernels is NULL",
       [](CRig& r) { return cubist_runtime_fetch_many(r.runtime, nullptr, 3); }},
      {"cubist_runtime_fetch_many", "kernels[0] is NULL",
       [](CRig& r) {
         const char* names[] = {nullptr};
         return cubist_runtime_fetch_many(r.runtime, names, 1);
       }},
      {"cubist_runtime_set_progress_callback", "runtime is NULL",
       [](CRig&) { return cubist_runtime_set_progress_callback(nullptr, nullptr, nullptr); }},
      {"cubist_runtime_cancel", "runtime is NULL",
       [](CRig&) { return cubist_runtime_cancel(nullptr); }},
      {"cubist_runtime_prepare", "runtime is NULL",
       [](CRig&) {
         const cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
         return cubist_runtime_prepare(nullptr, &options, nullptr);
       }},
      {"cubist_runtime_prepare", "options is NULL",
       [](CRig& r) { return cubist_runtime_prepare(r.runtime, nullptr, nullptr); }},
      {"cubist_runtime_prepare", "options.struct_size",
       [](CRig& r) {
         const auto options = with_size(cubist_prepare_options CUBIST_PREPARE_OPTIONS_INIT, 8);
         return cubist_runtime_prepare(r.runtime, &options, nullptr);
       }},
      {"cubist_runtime_prepare", "out_report.struct_size",
       [](CRig& r) {
         const cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
         auto report = with_size(cubist_prepare_report CUBIST_PREPARE_REPORT_INIT, -8);
         return cubist_runtime_prepare(r.runtime, &options, &report);
       }},
      {"cubist_runtime_prepare", "kernels is NULL",
       [](CRig& r) {
         cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
         options.num_kernels = 1;
         return cubist_runtime_prepare(r.runtime, &options, nullptr);
       }},
      {"cubist_runtime_prepare", "kernels[0] is NULL",
       [](CRig& r) {
         const char* names[] = {nullptr};
         cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
         options.kernels = names;
         options.num_kernels = 1;
         return cubist_runtime_prepare(r.runtime, &options, nullptr);
       }},
      {"cubist_runtime_prepare", "selections is NULL",
       [](CRig& r) {
         cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
         options.num_selections = 2;
         return cubist_runtime_prepare(r.runtime, &options, nullptr);
       }},
      {"cubist_runtime_prepare", "selections[0]: the selection is NULL",
       [](CRig& r) {
         cubist_selection* selections[] = {nullptr};
         cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
         options.selections = selections;
         options.num_selections = 1;
         return cubist_runtime_prepare(r.runtime, &options, nullptr);
       }},
      {"cubist_runtime_launch", "runtime is NULL",
       [](CRig& r) {
         return cubist_runtime_launch(nullptr, &r.problem, &r.device, &r.args, nullptr);
       }},
      {"cubist_runtime_launch", "problem is NULL",
       [](CRig& r) {
         return cubist_runtime_launch(r.runtime, nullptr, &r.device, &r.args, nullptr);
       }},
      {"cubist_runtime_launch", "problem.struct_size",
       [](CRig& r) {
         const auto problem = problem_of_size(-16);
         return cubist_runtime_launch(r.runtime, &problem, &r.device, &r.args, nullptr);
       }},
      {"cubist_runtime_launch", "device.struct_size",
       [](CRig& r) {
         const auto device = device_of_size(2);
         return cubist_runtime_launch(r.runtime, &r.problem, &device, &r.args, nullptr);
       }},
      {"cubist_runtime_launch", "args is NULL",
       [](CRig& r) {
         return cubist_runtime_launch(r.runtime, &r.problem, &r.device, nullptr, nullptr);
       }},
      {"cubist_scales_fuse", "runtime is NULL",
       [](CRig& r) {
         const cubist_scales scales = CUBIST_SCALES_INIT;
         return cubist_scales_fuse(nullptr, &r.problem, &scales, nullptr);
       }},
      {"cubist_scales_fuse", "problem is NULL",
       [](CRig& r) {
         const cubist_scales scales = CUBIST_SCALES_INIT;
         return cubist_scales_fuse(r.runtime, nullptr, &scales, nullptr);
       }},
      {"cubist_scales_fuse", "scales is NULL",
       [](CRig& r) { return cubist_scales_fuse(r.runtime, &r.problem, nullptr, nullptr); }},
      {"cubist_scales_fuse", "scales.struct_size",
       [](CRig& r) {
         const auto scales = with_size(cubist_scales CUBIST_SCALES_INIT, 8);
         return cubist_scales_fuse(r.runtime, &r.problem, &scales, nullptr);
       }},
  };
}

std::vector<Refusal> of_selections() {
  return {
      {"cubist_selection_destroy", "never was one",
       [](CRig& r) { return cubist_selection_destroy(stale_selection(r)); }},
      {"cubist_selection_get_num_plans", "selection is NULL",
       [](CRig&) {
         uint32_t count = 7;
         return cubist_selection_get_num_plans(nullptr, &count);
       }},
      {"cubist_selection_get_num_plans", "out_num_plans is NULL",
       [](CRig& r) { return cubist_selection_get_num_plans(r.selection, nullptr); }},
      {"cubist_selection_get_plan", "selection is NULL",
       [](CRig&) {
         cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
         return cubist_selection_get_plan(nullptr, 0, &plan);
       }},
      {"cubist_selection_get_plan", "out_plan is NULL",
       [](CRig& r) { return cubist_selection_get_plan(r.selection, 0, nullptr); }},
      {"cubist_selection_get_plan", "out_plan.struct_size",
       [](CRig& r) {
         auto plan = with_size(cubist_plan_info CUBIST_PLAN_INFO_INIT, 1);
         return cubist_selection_get_plan(r.selection, 0, &plan);
       }},
      {"cubist_selection_explain", "selection is NULL",
       [](CRig&) {
         const char* text = nullptr;
         return cubist_selection_explain(nullptr, &text);
       }},
      {"cubist_selection_explain", "out_text is NULL",
       [](CRig& r) { return cubist_selection_explain(r.selection, nullptr); }},
      {"cubist_selection_fetch", "selection is NULL",
       [](CRig&) { return cubist_selection_fetch(nullptr); }},
      {"cubist_selection_get_workspace", "selection is NULL",
       [](CRig&) {
         cubist_workspace_info out = CUBIST_WORKSPACE_INFO_INIT;
         return cubist_selection_get_workspace(nullptr, &out);
       }},
      {"cubist_selection_get_workspace", "out_workspace is NULL",
       [](CRig& r) { return cubist_selection_get_workspace(r.selection, nullptr); }},
      {"cubist_selection_get_workspace", "out_workspace.struct_size",
       [](CRig& r) {
         auto out = with_size(cubist_workspace_info CUBIST_WORKSPACE_INFO_INIT, -4);
         return cubist_selection_get_workspace(r.selection, &out);
       }},
      {"cubist_selection_clear_workspace", "selection is NULL",
       [](CRig& r) {
         return cubist_selection_clear_workspace(nullptr, r.args.workspace, r.args.workspace_size,
                                                 nullptr);
       }},
      {"cubist_selection_clear_workspace", "workspace is 0x0",
       [](CRig& r) {
         return cubist_selection_clear_workspace(r.selection, nullptr, r.args.workspace_size,
                                                 nullptr);
       }},
      {"cubist_selection_get_output", "selection is NULL",
       [](CRig&) {
         cubist_tensor_layout out = CUBIST_TENSOR_LAYOUT_INIT;
         return cubist_selection_get_output(nullptr, &out);
       }},
      {"cubist_selection_get_output", "out_layout is NULL",
       [](CRig& r) { return cubist_selection_get_output(r.selection, nullptr); }},
      {"cubist_selection_get_output", "out_layout.struct_size",
       [](CRig& r) {
         auto out = with_size(cubist_tensor_layout CUBIST_TENSOR_LAYOUT_INIT, 8);
         return cubist_selection_get_output(r.selection, &out);
       }},
      {"cubist_selection_get_output_scale", "selection is NULL",
       [](CRig&) {
         cubist_output_scale_info out = CUBIST_OUTPUT_SCALE_INFO_INIT;
         return cubist_selection_get_output_scale(nullptr, &out);
       }},
      {"cubist_selection_get_output_scale", "out_scale is NULL",
       [](CRig& r) { return cubist_selection_get_output_scale(r.selection, nullptr); }},
      {"cubist_selection_get_output_scale", "out_scale.struct_size",
       [](CRig& r) {
         auto out = with_size(cubist_output_scale_info CUBIST_OUTPUT_SCALE_INFO_INIT, 8);
         return cubist_selection_get_output_scale(r.selection, &out);
       }},
      {"cubist_selection_prepare", "selection is NULL",
       [](CRig&) { return cubist_selection_prepare(nullptr); }},
      {"cubist_selection_launch", "selection is NULL",
       [](CRig& r) { return cubist_selection_launch(nullptr, &r.args, nullptr); }},
      {"cubist_selection_launch", "args is NULL",
       [](CRig& r) { return cubist_selection_launch(r.selection, nullptr, nullptr); }},
      {"cubist_selection_launch", "args.struct_size",
       [](CRig& r) {
         const auto args = args_of_size(-8);
         return cubist_selection_launch(r.selection, &args, nullptr);
       }},
      {"cubist_selection_check", "selection is NULL",
       [](CRig& r) { return cubist_selection_check(nullptr, &r.args, nullptr); }},
      {"cubist_selection_check", "args is NULL",
       [](CRig& r) { return cubist_selection_check(r.selection, nullptr, nullptr); }},
      {"cubist_selection_check", "args.struct_size",
       [](CRig& r) {
         const auto args = args_of_size(8);
         return cubist_selection_check(r.selection, &args, nullptr);
       }},
  };
}

std::vector<Refusal> all_refusals() {
  std::vector<Refusal> all = of_runtimes();
  for (auto more : {selecting(), of_selections()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("every function refuses NULLs, sizes it does not know and handles that are none") {
  CRig rig;
  for (const Refusal& refusal : all_refusals()) {
    INFO(refusal.function << ": " << refusal.phrase);
    CHECK(refusal.call(rig) == CUBIST_STATUS_INVALID_ARGUMENT);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains(refusal.phrase));
  }
  CHECK(rig.output_is_untouched());
  CHECK(cubist::test::fake_cuda().launches().empty());
}

TEST_CASE("every exported function is in the table of refusals") {
  std::vector<std::string> tested = kNothingToRefuse;
  for (const Refusal& refusal : all_refusals()) tested.push_back(refusal.function);
  std::ifstream list(CUBIST_SOURCE_DIR "/tests/golden/exported_symbols.txt");
  std::size_t exported = 0;
  for (std::string name; std::getline(list, name);) {
    INFO(name);
    CHECK(std::count(tested.begin(), tested.end(), name) >= 1);
    ++exported;
  }
  CHECK(exported >= 30);
}
