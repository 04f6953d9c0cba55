// Selection alone: no GPU, no network, no store. How the choice moves with the batch.
//   example_select_only [MANIFEST]

#include <cstdio>
#include <exception>

#include "cubist/cubist.hpp"

int main(int argc, char** argv) {
  try {
    const cubist::Runtime runtime({argc > 1 ? argv[1] : "cubist-decode"});
    cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
    problem.num_q_heads = 64;
    problem.num_kv_heads = 8;
    problem.max_kv_len = 8192;
    for (problem.batch = 1; problem.batch <= 256; problem.batch *= 4) {
      const cubist::Selection selection = runtime.select(problem, CUBIST_DEVICE_INIT);
      const cubist_plan_info plan = selection.plan();
      std::printf("batch %3d: tile_q %d, %d CTAs a sequence, grid %u x %u x %u  %s\n",
                  problem.batch, plan.tile_q, plan.num_ctas_kv, plan.grid[0], plan.grid[1],
                  plan.grid[2], plan.kernel);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
