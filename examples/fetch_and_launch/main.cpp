// The whole way on the first GPU: select for it, fetch and verify the cubin, launch, look at the
// result.
//   example_fetch_and_launch [MANIFEST]
// Ends with 77 where there is no GPU that the manifest's kernels run on.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "cubist/cubist.hpp"
#include "device_memory.h"

namespace {

constexpr std::uint16_t kBf16One = 0x3f80;
constexpr std::uint16_t kBf16Three = 0x4040;

/// One new token for each of 4 sequences with 500 tokens: 32 query heads, 8 KV heads, head_dim 128.
cubist_attention_problem decode_step() {
  cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
  problem.num_q_heads = 32;
  problem.num_kv_heads = 8;
  problem.batch = 4;
  problem.max_kv_len = 500;
  problem.page_size = 32;
  return problem;
}

template <class T>
T* upload(const std::vector<T>& host) {
  return static_cast<T*>(device_alloc(host.data(), host.size() * sizeof(T)));
}

/// Every value in V is 3, so that the answer is 3 whatever the attention weights are.
bool launch_and_check(const cubist::Selection& selection) {
  constexpr std::size_t kPagesPerSeq = 16;
  constexpr std::size_t kPages = 4 * kPagesPerSeq;
  constexpr std::size_t kOutput = 4 * 32 * 128;
  std::vector<std::int32_t> table(kPages);
  for (std::size_t i = 0; i < kPages; ++i) table[i] = static_cast<std::int32_t>(kPages - 1 - i);

  cubist_attention_args args = CUBIST_ATTENTION_ARGS_INIT;
  args.q = upload(std::vector<std::uint16_t>(kOutput, kBf16One));
  args.k = upload(std::vector<std::uint16_t>(kPages * 8 * 32 * 128, kBf16One));
  args.v = upload(std::vector<std::uint16_t>(kPages * 8 * 32 * 128, kBf16Three));
  args.o = device_alloc(nullptr, kOutput * sizeof(std::uint16_t));
  args.block_table = upload(table);
  args.seq_lens_kv = upload(std::vector<std::int32_t>{500, 1, 33, 256});

  const cubist_workspace_info workspace = selection.workspace();
  if (workspace.size_bytes > 0) {
    args.workspace = device_alloc(nullptr, workspace.size_bytes);
    args.workspace_size = workspace.size_bytes;
    selection.clear_workspace(args.workspace, args.workspace_size);
  }
  selection.launch(args);

  std::vector<std::uint16_t> output(kOutput);
  device_synchronize();
  device_read(output.data(), args.o, kOutput * sizeof(std::uint16_t));
  for (const void* memory :
       {args.q, args.k, args.v, static_cast<const void*>(args.o),
        static_cast<const void*>(args.block_table), static_cast<const void*>(args.seq_lens_kv)}) {
    device_free(memory);
  }
  if (args.workspace != nullptr) device_free(args.workspace);
  for (const std::uint16_t value : output) {
    if (value != kBf16Three) return false;
  }
  return true;
}

int run(const char* manifest) {
  const cubist::Runtime runtime({manifest});
  const cubist::Selection selection = runtime.select(decode_step(), cubist::query_device());
  std::printf("%s\n", selection.plan().kernel);
  selection.prepare();  // fetches, verifies and loads
  const bool correct = launch_and_check(selection);
  std::printf("%s\n", correct ? "every output is 3, as it must be" : "WRONG output");
  return correct ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (device_open() == 0) return 77;
  int result = 1;
  try {
    result = run(argc > 1 ? argv[1] : "cubist-decode");
  } catch (const cubist::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    if (error.status() == CUBIST_STATUS_UNSUPPORTED) result = 77;  // no kernel for this GPU
  }
  device_close();
  return result;
}
