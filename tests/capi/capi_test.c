/* Every function of cubist.h from C99, with what it must refuse and what it must do. libcuda is the
 * tests' stand-in, which computes on the CPU.
 *   capi_test MANIFEST STORE_FOLDER */

#include <stdlib.h>

#include "check.h"
#include "cubist/cubist.h"
#include "device_memory.h"

int check_failures = 0;

static cubist_runtime* open_runtime(const char* manifest, const char* store) {
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  cubist_runtime* runtime = NULL;
  options.manifests = &manifest;
  options.num_manifests = 1;
  options.store_dir = store;
  options.offline = 1;
  CHECK_OK(cubist_runtime_open(&options, &runtime));
  return runtime;
}

/* 8 query heads on 2 KV heads, head_dim 64, bf16; two sequences with 2 new tokens each. */
static cubist_attention_problem small_problem(void) {
  cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
  problem.head_dim_qk = 64;
  problem.num_q_heads = 8;
  problem.num_kv_heads = 2;
  problem.batch = 2;
  problem.max_q_len = 2;
  problem.max_kv_len = 2048;
  problem.page_size = 32;
  return problem;
}

static void test_texts(void) {
  CHECK(strcmp(cubist_status_string(CUBIST_STATUS_INTEGRITY), "integrity") == 0);
  CHECK(strcmp(cubist_status_string(-5), "unknown") == 0);
  CHECK(cubist_version_number() == CUBIST_VERSION_NUMBER);
  CHECK(strcmp(cubist_version_string(), CUBIST_VERSION_STRING) == 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "out_count is NULL", cubist_device_count(NULL));
  CHECK(strcmp(cubist_last_error_message(), "out_count is NULL") == 0);
  CHECK_OK(cubist_runtime_destroy(NULL));
  CHECK(strcmp(cubist_last_error_message(), "") == 0);
}

static void test_open(const char* manifest, const char* store) {
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  cubist_runtime* runtime = (cubist_runtime*)&options;
  const char* names[2];
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "options is NULL",
               cubist_runtime_open(NULL, &runtime));
  CHECK(runtime == NULL);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "out_runtime", cubist_runtime_open(&options, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "at least one",
               cubist_runtime_open(&options, &runtime));
  options.struct_size = 4;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "options.struct_size is 4",
               cubist_runtime_open(&options, &runtime));
  options.struct_size = sizeof(options);
  names[0] = manifest;
  names[1] = NULL;
  options.manifests = names;
  options.num_manifests = 2;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "manifests[1] is NULL",
               cubist_runtime_open(&options, &runtime));
  names[1] = "no-such-manifest";
  CHECK_STATUS(CUBIST_STATUS_NOT_FOUND, "'no-such-manifest'",
               cubist_runtime_open(&options, &runtime));
  names[1] = "/no/such/file.json";
  CHECK_STATUS(CUBIST_STATUS_NOT_FOUND, "/no/such/file.json",
               cubist_runtime_open(&options, &runtime));
  options.num_manifests = 1;
  options.offline = 2;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "options.offline is 2",
               cubist_runtime_open(&options, &runtime));
  CHECK(runtime == NULL);
  runtime = open_runtime(manifest, store);
  CHECK(runtime != NULL);
  CHECK_OK(cubist_runtime_destroy(runtime));
}

static void test_handles(const char* manifest, const char* store) {
  cubist_runtime* runtime = open_runtime(manifest, store);
  cubist_runtime* stale = runtime;
  cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
  CHECK_OK(cubist_runtime_get_info(runtime, &info));
  CHECK(info.num_kernels > 0);
  CHECK(strcmp(info.store_dir, store) == 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "the runtime is NULL",
               cubist_runtime_get_info(NULL, &info));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "out_info is NULL",
               cubist_runtime_get_info(runtime, NULL));
  info.struct_size = 1000;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "struct_size is 1000",
               cubist_runtime_get_info(runtime, &info));
  info.struct_size = sizeof(info);
  CHECK_OK(cubist_runtime_destroy(runtime));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "was destroyed already",
               cubist_runtime_destroy(stale));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "was destroyed already",
               cubist_runtime_get_info(stale, &info));
  runtime = open_runtime(manifest, store); /* takes the slot again, with another generation */
  CHECK(runtime != stale);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "was destroyed already",
               cubist_runtime_get_info(stale, &info));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "never was one",
               cubist_runtime_destroy((cubist_runtime*)&info));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "never was one",
               cubist_selection_destroy((cubist_selection*)runtime));
  CHECK_OK(cubist_runtime_destroy(runtime));
}

static void test_fetch(cubist_runtime* runtime, cubist_selection* selection) {
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "kernel is NULL",
               cubist_runtime_fetch(runtime, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "runtime is NULL", cubist_runtime_fetch(NULL, "k"));
  CHECK_STATUS(CUBIST_STATUS_NOT_FOUND, "name 'no_such_kernel'",
               cubist_runtime_fetch(runtime, "no_such_kernel"));
  CHECK_STATUS(CUBIST_STATUS_NOT_FOUND, "sha256",
               cubist_runtime_fetch(
                   runtime, "0000000000000000000000000000000000000000000000000000000000000000"));
  CHECK_OK(cubist_selection_get_plan(selection, 0, &plan));
  CHECK_OK(cubist_runtime_fetch(runtime, plan.sha256));
  CHECK_OK(cubist_runtime_fetch(runtime, plan.kernel));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "selection is NULL", cubist_selection_fetch(NULL));
  CHECK_OK(cubist_selection_fetch(selection));
}

static void test_select(cubist_runtime* runtime) {
  cubist_attention_problem problem = small_problem();
  cubist_device device = CUBIST_DEVICE_INIT;
  cubist_selection* selection = (cubist_selection*)runtime;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "problem is NULL",
               cubist_runtime_select(runtime, NULL, &device, &selection));
  CHECK(selection == NULL);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "device is NULL",
               cubist_runtime_select(runtime, &problem, NULL, &selection));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "out_selection is NULL",
               cubist_runtime_select(runtime, &problem, &device, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "runtime is NULL",
               cubist_runtime_select(NULL, &problem, &device, &selection));
  problem.struct_size = 0;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "problem.struct_size is 0",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  problem = small_problem();
  device.struct_size += 1;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "device.struct_size",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  device.struct_size -= 1;
  problem.dtype_q = 99;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "dtype_q is 99",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  problem = small_problem();
  problem.causal = -1;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "causal is -1",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  problem = small_problem();
  problem.num_q_heads = 9;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "num_q_heads is 9",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  problem = small_problem();
  problem.head_dim_qk = 96;
  CHECK_STATUS(CUBIST_STATUS_UNSUPPORTED, "",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  problem = small_problem();
  memset(device.name, 'x', sizeof(device.name));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "device.name",
               cubist_runtime_select(runtime, &problem, &device, &selection));
  CHECK(selection == NULL);
}

static void test_selection(cubist_selection* selection) {
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
  uint32_t num_plans = 77;
  const char* text = "x";
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL",
               cubist_selection_get_num_plans(NULL, &num_plans));
  CHECK(num_plans == 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL",
               cubist_selection_get_num_plans(selection, NULL));
  CHECK_OK(cubist_selection_get_num_plans(selection, &num_plans));
  CHECK(num_plans >= 1);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL", cubist_selection_get_plan(NULL, 0, &plan));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL",
               cubist_selection_get_plan(selection, 0, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "plan(s)",
               cubist_selection_get_plan(selection, num_plans, &plan));
  plan.struct_size = 8;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "struct_size is 8",
               cubist_selection_get_plan(selection, 0, &plan));
  plan.struct_size = sizeof(plan);
  CHECK_OK(cubist_selection_get_plan(selection, 0, &plan));
  CHECK(plan.family == CUBIST_FAMILY_CUBIST_DECODE);
  CHECK(strlen(plan.sha256) == 64);
  CHECK(strcmp(plan.arch, "sm_90a") == 0);
  CHECK(strcmp(plan.revision, "cubist-decode-1") == 0);
  CHECK(strcmp(plan.fallback, "") == 0);
  CHECK(plan.grid[0] > 0 && plan.block[0] > 0 && plan.size_bytes > 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL", cubist_selection_explain(NULL, &text));
  CHECK(text == NULL);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL", cubist_selection_explain(selection, NULL));
  CHECK_OK(cubist_selection_explain(selection, &text));
  CHECK(strstr(text, plan.kernel) != NULL);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL",
               cubist_selection_get_workspace(NULL, &workspace));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL",
               cubist_selection_get_workspace(selection, NULL));
  workspace.struct_size = 1;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "struct_size is 1",
               cubist_selection_get_workspace(selection, &workspace));
  workspace.struct_size = sizeof(workspace);
  CHECK_OK(cubist_selection_get_workspace(selection, &workspace));
  CHECK(workspace.zero_bytes <= workspace.size_bytes);
}

static void test_device(void) {
  cubist_device device = CUBIST_DEVICE_INIT;
  int32_t count = 0;
  CHECK_OK(cubist_device_count(&count));
  CHECK(count == 1);
  CHECK_OK(cubist_device_query(0, &device));
  CHECK(device.sm == 90);
  CHECK(device.num_sms == 132);
  CHECK(strcmp(device.name, "Fake H200") == 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "device 1 does not exist",
               cubist_device_query(1, &device));
  CHECK(device.sm == 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "out_device is NULL", cubist_device_query(0, NULL));
  device.struct_size = 3;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "struct_size is 3", cubist_device_query(0, &device));
}

/* All keys are 1 where all of v is 2.5: whatever the softmax, the answer is 2.5 times o_scale. */
static void test_launch(cubist_runtime* runtime, cubist_selection* selection) {
  enum { kPages = 128, kPageElements = 2 * 32 * 64, kRows = 4 * 8 * 64 };
  cubist_attention_args args = CUBIST_ATTENTION_ARGS_INIT;
  cubist_attention_problem problem = small_problem();
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  cubist_prepare_report report = CUBIST_PREPARE_REPORT_INIT;
  cubist_tensor_layout layout = CUBIST_TENSOR_LAYOUT_INIT;
  cubist_workspace_info bound = CUBIST_WORKSPACE_INFO_INIT;
  cubist_device device = CUBIST_DEVICE_INIT;
  cubist_workspace_info workspace = CUBIST_WORKSPACE_INFO_INIT;
  uint16_t* numbers = (uint16_t*)malloc(sizeof(uint16_t) * kPages * kPageElements);
  int32_t table[2 * 64];
  const int32_t lengths[2] = {2048, 3};
  uint16_t out[kRows];
  int i;
  CHECK(device_open());
  for (i = 0; i < kPages * kPageElements; ++i) numbers[i] = 0x3f80; /* bf16 1 */
  for (i = 0; i < 128; ++i) table[i] = 127 - i;
  args.q = device_alloc(numbers, sizeof(out));
  args.k = device_alloc(numbers, sizeof(uint16_t) * kPages * kPageElements);
  for (i = 0; i < kPages * kPageElements; ++i) numbers[i] = 0x4020; /* bf16 2.5 */
  args.v = device_alloc(numbers, sizeof(uint16_t) * kPages * kPageElements);
  args.o = device_alloc(NULL, sizeof(out));
  args.block_table = (const int32_t*)device_alloc(table, sizeof(table));
  args.seq_lens_kv = (const int32_t*)device_alloc(lengths, sizeof(lengths));
  args.o_scale = 2.0f;
  CHECK_OK(cubist_selection_get_workspace(selection, &workspace));
  CHECK(workspace.size_bytes > 0);
  args.workspace = device_alloc(NULL, (size_t)workspace.size_bytes);
  args.workspace_size = workspace.size_bytes;

  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL", cubist_selection_prepare(NULL));
  CHECK_OK(cubist_runtime_get_workspace_bound(runtime, &problem, &device, &bound));
  CHECK(bound.size_bytes >= workspace.size_bytes && bound.alignment == workspace.alignment);
  CHECK_OK(cubist_selection_get_output(selection, &layout));
  CHECK(layout.rank == 3 && layout.shape[0] == 4 && layout.strides[0] == 8 * 64);
  CHECK_OK(cubist_selection_prepare(selection));
  options.selections = &selection;
  options.num_selections = 1;
  CHECK_OK(cubist_runtime_prepare(runtime, &options, &report));
  CHECK(report.num_kernels == 1 && report.num_present == 1 && report.milliseconds > 0);
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL",
               cubist_selection_clear_workspace(NULL, args.workspace, args.workspace_size, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "bytes aligned to",
               cubist_selection_clear_workspace(selection, NULL, args.workspace_size, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "bytes aligned to",
               cubist_selection_clear_workspace(selection, args.workspace, 1, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "NULL", cubist_selection_launch(NULL, &args, NULL));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "args is NULL",
               cubist_selection_launch(selection, NULL, NULL));
  args.struct_size = 12;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "args.struct_size is 12",
               cubist_selection_launch(selection, &args, NULL));
  args.struct_size = sizeof(args);
  args.k_scale = 0.5f;
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "k_scale is 0.5",
               cubist_selection_launch(selection, &args, NULL));
  args.k_scale = 1.0f;

  CHECK_OK(cubist_selection_clear_workspace(selection, args.workspace, args.workspace_size, NULL));
  for (i = 0; i < 3; ++i) CHECK_OK(cubist_selection_launch(selection, &args, NULL));
  for (i = 0; i < 3; ++i) CHECK_OK(cubist_runtime_launch(runtime, &problem, NULL, &args, NULL));
  device_read(out, args.o, sizeof(out));
  for (i = 0; i < kRows; ++i) {
    if (out[i] != 0x40a0) break; /* bf16 5 */
  }
  CHECK(i == kRows);

  device_free(args.q);
  device_free(args.k);
  device_free(args.v);
  device_free(args.o);
  device_free(args.block_table);
  device_free(args.seq_lens_kv);
  device_free(args.workspace);
  free(numbers);
}

static int logged = 0;
static void count_messages(int32_t level, const char* message, void* user_data) {
  CHECK(level >= CUBIST_LOG_DEBUG && message != NULL);
  ++*(int*)user_data;
}

static void test_log(void) {
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "min_level is 9",
               cubist_log_set_callback(count_messages, &logged, 9));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "min_level is -1",
               cubist_log_set_callback(NULL, NULL, -1));
  CHECK_OK(cubist_log_set_callback(count_messages, &logged, CUBIST_LOG_DEBUG));
}

int main(int argc, char** argv) {
  cubist_attention_problem problem = small_problem();
  cubist_device device = CUBIST_DEVICE_INIT;
  cubist_runtime* runtime = NULL;
  cubist_selection* selection = NULL;
  cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
  if (argc != 3) return 2;
  test_texts();
  test_open(argv[1], argv[2]);
  test_handles(argv[1], argv[2]);
  test_log();
  runtime = open_runtime(argv[1], argv[2]);
  test_select(runtime);
  CHECK_OK(cubist_runtime_select(runtime, &problem, &device, &selection));
  test_fetch(runtime, selection);
  test_selection(selection);
  test_launch(runtime, selection);
  test_device();
  CHECK_OK(cubist_runtime_get_info(runtime, &info));
  CHECK(info.loads == 1 && info.failed_loads == 0 && info.load_nanoseconds > 0);
  CHECK(info.selections >= 1 && info.fallbacks == 0);
  CHECK(logged > 0);
  CHECK_OK(cubist_log_set_callback(NULL, NULL, CUBIST_LOG_WARNING));

  CHECK_OK(cubist_runtime_destroy(runtime)); /* the selection keeps what it needs */
  CHECK_OK(cubist_selection_prepare(selection));
  CHECK_OK(cubist_selection_destroy(selection));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "was destroyed already",
               cubist_selection_prepare(selection));
  CHECK_STATUS(CUBIST_STATUS_INVALID_ARGUMENT, "was destroyed already",
               cubist_selection_destroy(selection));
  CHECK_OK(cubist_selection_destroy(NULL));
  device_close();
  if (check_failures == 0) puts("all checks passed");
  return check_failures == 0 ? 0 : 1;
}
