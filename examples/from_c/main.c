/* From C: which kernels serve a decode step of GPT-OSS on an H200, and bring them into the store.
 * Half of its layers attend to everything, the others to a window of 128 tokens; all have attention
 * sinks. example_from_c [MANIFEST] */

#include <stdio.h>

#include "cubist/cubist.h"

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, cubist_last_error_message());
  return 1;
}

/* window_left: tokens left of the query's own; -1: no window. */
static int bring_kernel(cubist_runtime* runtime, const char* layers, int32_t window_left) {
  cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
  cubist_device h200 = CUBIST_DEVICE_INIT;
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  cubist_selection* selection = NULL;
  int result = 0;

  problem.head_dim_qk = 64;
  problem.num_q_heads = 64;
  problem.num_kv_heads = 8;
  problem.sinks = 1;
  problem.window_left = window_left;
  problem.batch = 32;
  problem.max_q_len = 4;
  problem.max_kv_len = 8192;
  problem.page_size = 32;
  if (cubist_runtime_select(runtime, &problem, &h200, &selection) != CUBIST_STATUS_OK) {
    result = fail("select");
  } else if (cubist_selection_get_plan(selection, 0, &plan) != CUBIST_STATUS_OK) {
    result = fail("plan");
  } else {
    printf("%s: %s\n  grid %u x %u x %u, block %u, %u bytes of shared memory\n", layers,
           plan.kernel, plan.grid[0], plan.grid[1], plan.grid[2], plan.block[0], plan.smem);
    if (cubist_selection_fetch(selection) != CUBIST_STATUS_OK) result = fail("fetch");
    if (result == 0) printf("  verified and in the store: %s\n", plan.sha256);
  }
  cubist_selection_destroy(selection);
  return result;
}

int main(int argc, char** argv) {
  const char* manifest = argc > 1 ? argv[1] : "cubist-decode";
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  cubist_runtime* runtime = NULL;
  int result = 0;

  options.manifests = &manifest;
  options.num_manifests = 1;
  if (cubist_runtime_open(&options, &runtime) != CUBIST_STATUS_OK) return fail("open");
  result = bring_kernel(runtime, "full attention", -1);
  if (result == 0) result = bring_kernel(runtime, "sliding window", 127);
  cubist_runtime_destroy(runtime);
  return result;
}
