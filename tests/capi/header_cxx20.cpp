// The C header as C++20 with every warning, on its own.
#include "cubist/cubist.h"

cubist_device device = CUBIST_DEVICE_INIT;
cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
cubist_attention_args args = CUBIST_ATTENTION_ARGS_INIT;
cubist_prepare_options prepare_options = CUBIST_PREPARE_OPTIONS_INIT;
cubist_prepare_report prepare_report = CUBIST_PREPARE_REPORT_INIT;
cubist_tensor_layout layout = CUBIST_TENSOR_LAYOUT_INIT;
cubist_output_scale_info output_scale = CUBIST_OUTPUT_SCALE_INFO_INIT;
cubist_scales scales = CUBIST_SCALES_INIT;
