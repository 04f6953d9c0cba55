// The C header as C++20 with every warning, on its own.
#include "cubist/cubist.h"

cubist_device device = CUBIST_DEVICE_INIT;
cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
cubist_decode_args args = CUBIST_DECODE_ARGS_INIT;
