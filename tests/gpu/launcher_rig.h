#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

#include "cubist/gpu_session.h"
#include "cubist/launch_check.h"
#include "driver/device_query.h"
#include "runtime/selected.h"
#include "support/catch.h"
#include "support/scratch.h"

namespace cubist {

using tools::GpuSession;

/// Driver functions that only tests use, by the names that libcuda exports.
struct ExtraDriver {
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    REQUIRE(function != nullptr);
  }
  ExtraDriver() {
    find(context_create, "cuCtxCreate_v2");
    find(context_destroy, "cuCtxDestroy_v2");
    find(stream_create, "cuStreamCreate");
    find(stream_destroy, "cuStreamDestroy_v2");
    find(begin_capture, "cuStreamBeginCapture_v2");
    find(end_capture, "cuStreamEndCapture");
    find(instantiate, "cuGraphInstantiateWithFlags");
    find(graph_launch, "cuGraphLaunch");
    find(exec_destroy, "cuGraphExecDestroy");
    find(graph_destroy, "cuGraphDestroy");
  }
  void* library = dlopen(driver::libcuda_names()[0].c_str(), RTLD_NOW);
  cuda::CUresult (*context_create)(cuda::CUcontext*, unsigned, cuda::CUdevice) = nullptr;
  cuda::CUresult (*context_destroy)(cuda::CUcontext) = nullptr;
  cuda::CUresult (*stream_create)(cuda::CUstream*, unsigned) = nullptr;
  cuda::CUresult (*stream_destroy)(cuda::CUstream) = nullptr;
  cuda::CUresult (*begin_capture)(cuda::CUstream, cuda::CUstreamCaptureMode) = nullptr;
  cuda::CUresult (*end_capture)(cuda::CUstream, void** graph) = nullptr;
  cuda::CUresult (*instantiate)(void** exec, void* graph, unsigned long long flags) = nullptr;
  cuda::CUresult (*graph_launch)(void* exec, cuda::CUstream) = nullptr;
  cuda::CUresult (*exec_destroy)(void* exec) = nullptr;
  cuda::CUresult (*graph_destroy)(void* graph) = nullptr;
};

inline constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

inline std::shared_ptr<driver::Driver> driver_of_process() {
  static const auto driver = driver::Driver::open();
  return driver ? *driver : nullptr;
}

/// One problem with its inputs and outputs in the context that is current.
class Call {
 public:
  Call(GpuSession& session, runtime::Selected& selected) : session_(session), selected_(selected) {
    inputs_ = tools::make_launch_inputs(selected.problem(), 11).value();
    scales_ = tools::launch_scales(selected.problem()).value();
    args.q = session.upload(inputs_.q).value();
    args.k = session.upload(inputs_.k).value();
    args.v = session.upload(inputs_.v).value();
    args.o = session.allocate(inputs_.o_bytes).value();
    args.block_table = session.upload(inputs_.block_table).value();
    args.seq_lens_kv = session.upload(inputs_.seq_lens_kv).value();
    args.scales.sm_scale = scales_.sm_scale;
    args.workspace_size = selected.workspace()->size;
    args.workspace = session.allocate(args.workspace_size).value();
    REQUIRE(session.fill(args.workspace, 0xff, args.workspace_size));
    REQUIRE(selected.clear_workspace(args.workspace, args.workspace_size, nullptr));
    poison();
    REQUIRE(session.synchronize());
  }

  void poison() { REQUIRE(session_.fill(args.o, 0xff, inputs_.o_bytes)); }
  /// The output's bit patterns, after what the default stream holds; other streams must be waited
  /// for.
  std::vector<std::uint16_t> output() {
    return session_.download<std::uint16_t>(args.o, inputs_.o_bytes / 2).value();
  }
  /// What the reference shall multiply with, where `args` say otherwise than at first.
  void set_scales(const tools::LaunchScales& scales) { scales_ = scales; }
  void check(const std::vector<std::uint16_t>& o) const {
    const tools::LaunchCheck check =
        tools::check_launch(selected_.problem(), inputs_, scales_, {o, {}});
    CHECK(check.failure == "");
    CHECK(check.compared > 0);
  }

  launcher::CallArgs args;

 private:
  GpuSession& session_;
  runtime::Selected& selected_;
  tools::LaunchInputs inputs_;
  tools::LaunchScales scales_;
};

/// A runtime with an empty store, a selection that is split over CTAs, and the first GPU.
struct Rig {
  explicit Rig(bool pdl = true) : Rig(split_problem(pdl)) {}
  explicit Rig(const AttentionProblem& problem) {
    runtime::RuntimeOptions options;
    options.manifests = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json",
                         CUBIST_SOURCE_DIR "/manifests/cubist-aux.json"};
    options.store_dir = store.path();
    options.offline = true;
    runtime = runtime::Runtime::open(options).value();
    const DeviceProfile device = driver::query_device(*driver_of_process(), 0).value();
    selected = runtime->select(problem, device).value();
    session = GpuSession::open(*driver_of_process(), 0).value();
  }

  static AttentionProblem split_problem(bool pdl) {
    AttentionProblem problem;
    problem.head_dim_qk = 128;
    problem.num_q_heads = 32;
    problem.batch = 3;
    problem.max_q_len = 2;
    problem.max_kv_len = 4000;
    problem.page_size = 32;
    problem.enable_pdl = pdl;
    return problem;
  }

  test::Scratch store;
  std::shared_ptr<runtime::Runtime> runtime;
  std::unique_ptr<runtime::Selected> selected;
  std::unique_ptr<GpuSession> session;
  ExtraDriver extra;
};

}  // namespace cubist
