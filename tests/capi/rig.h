#pragma once

#include <cstdint>
#include <vector>

#include "cubist/cubist.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"
#include "support/scratch.h"

namespace cubist::test {

/// A runtime over the shipped manifests and a decode call in which everything is right: 8 query
/// heads on 2 KV heads, head_dim 64, bf16; 2 sequences with 2 new tokens each. libcuda is the
/// stand-in, for which memory of the host is that of the device; what a launch writes is watched.
class CRig {
 public:
  /// store_dir  shared by several rigs; empty: one of its own
  explicit CRig(const std::string& store_dir = {}) {
    fake_cuda().reset();
    const char* manifests[] = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json",
                               CUBIST_SOURCE_DIR "/manifests/cubist-aux.json"};
    cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
    options.manifests = manifests;
    options.num_manifests = 2;
    options.store_dir = store_dir.empty() ? store_.path().c_str() : store_dir.c_str();
    options.offline = 1;
    REQUIRE(cubist_runtime_open(&options, &runtime) == CUBIST_STATUS_OK);
    fake_cuda().set_current(fake_cuda().create_context(0));
    stream = fake_cuda().create_stream();

    problem.head_dim_qk = 64;
    problem.num_q_heads = 8;
    problem.num_kv_heads = 2;
    problem.batch = 2;
    problem.max_q_len = 2;
    problem.max_kv_len = 2048;
    problem.page_size = 32;
    REQUIRE(cubist_runtime_select(runtime, &problem, &device, &selection) == CUBIST_STATUS_OK);
    cubist_workspace_info need = CUBIST_WORKSPACE_INFO_INIT;
    REQUIRE(cubist_selection_get_workspace(selection, &need) == CUBIST_STATUS_OK);
    workspace_.assign(need.size_bytes + 256, 0);
    args.q = aligned(q_);
    args.k = aligned(k_);
    args.v = aligned(v_);
    args.o = aligned(o_);
    args.block_table = table_.data();
    args.seq_lens_kv = lengths_.data();
    args.workspace = reinterpret_cast<void*>(
        (reinterpret_cast<std::uintptr_t>(workspace_.data()) + 255) / 256 * 256);
    args.workspace_size = need.size_bytes;
  }
  ~CRig() {
    cubist_selection_destroy(selection);
    cubist_runtime_destroy(runtime);
  }
  CRig(const CRig&) = delete;
  CRig& operator=(const CRig&) = delete;

  /// Selects for `problem` and launches with `args`: the status of the first that fails.
  cubist_status select_and_launch() {
    cubist_selection* made = nullptr;
    cubist_status status = cubist_runtime_select(runtime, &problem, &device, &made);
    if (status != CUBIST_STATUS_OK) return status;
    status = cubist_selection_launch(made, &args, nullptr);
    const std::string message = cubist_last_error_message();
    cubist_selection_destroy(made);
    last_message = message;
    return status;
  }
  bool output_is_untouched() const { return o_ == std::vector<std::uint16_t>(o_.size(), kPattern); }

  cubist_runtime* runtime = nullptr;
  cubist_selection* selection = nullptr;
  cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
  cubist_device device = CUBIST_DEVICE_INIT;
  cubist_attention_args args = CUBIST_ATTENTION_ARGS_INIT;
  void* stream = nullptr;
  std::string last_message;

 private:
  static constexpr std::uint16_t kPattern = 0x1234;
  static constexpr std::size_t kPages = 128;
  static void* aligned(std::vector<std::uint16_t>& memory) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 *
                                   16);
  }

  Scratch store_;
  Environment libcuda_{Environment::Values{{"CUBIST_LIBCUDA", fake_libcuda_path()}}};
  std::vector<std::uint16_t> q_ = std::vector<std::uint16_t>(4 * 8 * 64 + 8, 0x3f80);
  std::vector<std::uint16_t> k_ = std::vector<std::uint16_t>(kPages * 2 * 32 * 64 + 8, 0x3f80);
  std::vector<std::uint16_t> v_ = std::vector<std::uint16_t>(kPages * 2 * 32 * 64 + 8, 0x4020);
  std::vector<std::uint16_t> o_ = std::vector<std::uint16_t>(4 * 8 * 64 + 8, kPattern);
  std::vector<std::int32_t> table_ = std::vector<std::int32_t>(kPages, 0);
  std::vector<std::int32_t> lengths_ = {40, 3};
  std::vector<std::uint8_t> workspace_;
};

}  // namespace cubist::test
