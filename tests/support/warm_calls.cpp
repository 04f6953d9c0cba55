#include "support/warm_calls.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "support/made_trtllm_gen.h"

namespace cubist::test {
namespace {

using Call = WarmCalls::Call;

void require(cubist_status status, const std::string& what) {
  if (status == CUBIST_STATUS_OK) return;
  throw std::runtime_error(what + ": " + cubist_last_error_message());
}

/// An address that nobody reads behind.
template <class T>
T* made_up(std::uintptr_t number) {
  return reinterpret_cast<T*>(number << 40);
}

Call paged_decode(const std::string& name, int head_dim, int num_q_heads, int num_kv_heads,
                  int batch, int max_kv_len) {
  Call call;
  call.name = name;
  cubist_attention_problem& problem = call.problem;
  problem.head_dim_qk = head_dim;
  problem.num_q_heads = num_q_heads;
  problem.num_kv_heads = num_kv_heads;
  problem.batch = batch;
  problem.max_q_len = 1;
  problem.max_kv_len = max_kv_len;
  problem.page_size = 32;
  cubist_attention_args& args = call.args;
  args.q = made_up<void>(1);
  args.k = made_up<void>(2);
  args.v = made_up<void>(3);
  args.o = made_up<void>(4);
  args.block_table = made_up<int32_t>(5);
  args.seq_lens_kv = made_up<int32_t>(6);
  args.workspace = made_up<void>(7);
  return call;
}

Call mla_decode() {
  Call call = paged_decode("MLA decode, one copy", 576, 128, 1, 4, 8192);
  call.problem.head_dim_vo = 512;
  call.problem.is_mla = 1;
  call.args.v = nullptr;
  return call;
}

Call many_tokens(const std::string& name, int phase) {
  Call call = paged_decode(name, 128, 32, 8, 4, 2048);
  call.problem.phase = phase;
  call.problem.max_q_len = 512;
  call.problem.varlen_q = 1;
  call.args.cum_seq_lens_q = made_up<int32_t>(8);
  call.args.cum_seq_lens_kv = made_up<int32_t>(9);
  return call;
}

Call ragged_with_lse() {
  Call call = many_tokens("ragged, LSE", CUBIST_PHASE_RAGGED);
  call.problem.page_size = 0;
  call.problem.lse = 1;
  call.args.block_table = nullptr;
  call.args.lse = made_up<float>(10);
  return call;
}

Call device_scales() {
  Call call = paged_decode("decode, device scales", 128, 32, 8, 64, 4096);
  call.args.bmm1_scale_log2 = made_up<float>(11);
  call.args.bmm2_scale = made_up<float>(12);
  return call;
}

std::vector<Call> made_calls() {
  return {paged_decode("decode", 128, 32, 8, 64, 4096),           device_scales(),
          paged_decode("decode, KV split", 128, 64, 8, 2, 65536), mla_decode(),
          many_tokens("context", CUBIST_PHASE_CONTEXT),           ragged_with_lse()};
}

}  // namespace

const char* quiet_libcuda_path() { return CUBIST_QUIET_LIBCUDA; }

WarmCalls::WarmCalls()
    : folder_(std::filesystem::temp_directory_path().string() + "/cubist-warm-" +
              std::to_string(::getpid())) {
  ::setenv("CUBIST_LIBCUDA", quiet_libcuda_path(), 1);
  ::setenv("CUBIST_MANIFESTS", CUBIST_SOURCE_DIR "/manifests", 1);
  std::filesystem::create_directories(folder_);
  device_.sm = 100;
  device_.num_sms = 148;
  calls_ = made_calls();
  // Which kernels they need, from the manifest as it is shipped; then files for those.
  open("flashinfer-0.6.13");
  std::set<std::string> kernels;
  for (Call& call : calls_) {
    select(call);
    kernels.insert(call.kernel);
  }
  close();
  open(write_trtllm_gen(CUBIST_SOURCE_DIR, folder_, "0.6.13", kernels));
  for (Call& call : calls_) {
    select(call);
    require(launch_selection(call), call.name);
    require(launch_runtime(call), call.name);
  }
}

WarmCalls::~WarmCalls() {
  close();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void WarmCalls::open(const std::string& manifest) {
  const std::string store = folder_ + "/store";
  const char* manifests[] = {manifest.c_str()};
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  options.manifests = manifests;
  options.num_manifests = 1;
  options.store_dir = store.c_str();
  options.offline = 1;
  require(cubist_runtime_open(&options, &runtime_), manifest);
}

void WarmCalls::close() {
  for (Call& call : calls_) {
    cubist_selection_destroy(call.selection);
    call.selection = nullptr;
  }
  cubist_runtime_destroy(runtime_);
  runtime_ = nullptr;
}

void WarmCalls::select(Call& call) {
  require(cubist_runtime_select(runtime_, &call.problem, &device_, &call.selection), call.name);
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  require(cubist_selection_get_plan(call.selection, 0, &plan), call.name);
  call.kernel = plan.kernel;
  call.num_launches = 1 + plan.needs_reduction + plan.needs_lse;
  cubist_workspace_info need = CUBIST_WORKSPACE_INFO_INIT;
  require(cubist_selection_get_workspace(call.selection, &need), call.name);
  call.args.workspace_size = need.size_bytes;
  if (need.size_bytes == 0) call.args.workspace = nullptr;
}

}  // namespace cubist::test
