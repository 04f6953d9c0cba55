// Prepare on a real driver: all kernels at once, in primary, created and green contexts; captures
// after it; a look behind the addresses of a call.

#include <cstdio>
#include <set>

#include "launcher_rig.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;

/// What the first GPU's green contexts are made with: half of its SMs.
class GreenContext {
 public:
  /// Not made where the driver has none; see made().
  explicit GreenContext(ExtraDriver& extra) {
    constexpr int kSmResource = 1;          // CU_DEV_RESOURCE_TYPE_SM
    constexpr unsigned kDefaultStream = 1;  // CU_GREEN_CTX_DEFAULT_STREAM
    if (!find(extra, device_get_resource_, "cuDeviceGetDevResource") ||
        !find(extra, split_, "cuDevSmResourceSplitByCount") ||
        !find(extra, generate_, "cuDevResourceGenerateDesc") ||
        !find(extra, create_, "cuGreenCtxCreate") || !find(extra, destroy_, "cuGreenCtxDestroy") ||
        !find(extra, from_green_, "cuCtxFromGreenCtx")) {
      return;
    }
    Resource all;
    Resource half;
    unsigned groups = 1;
    void* description = nullptr;
    REQUIRE(device_get_resource_(0, &all, kSmResource) == 0);
    REQUIRE(split_(&half, &groups, &all, nullptr, 0, 64) == 0);
    REQUIRE(generate_(&description, &half, 1) == 0);
    REQUIRE(create_(&green_, description, 0, kDefaultStream) == 0);
    REQUIRE(from_green_(&context_, green_) == 0);
  }
  ~GreenContext() {
    if (green_ != nullptr) destroy_(green_);
  }
  GreenContext(const GreenContext&) = delete;
  GreenContext& operator=(const GreenContext&) = delete;

  bool made() const { return context_ != nullptr; }
  cuda::CUcontext context() const { return context_; }

 private:
  /// CUdevResource: a type and space for what belongs to it.
  struct alignas(8) Resource {
    unsigned char bytes[256] = {};
  };
  template <class Function>
  static bool find(ExtraDriver& extra, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(extra.library, name));
    return function != nullptr;
  }

  cuda::CUresult (*device_get_resource_)(int, Resource*, int) = nullptr;
  cuda::CUresult (*split_)(Resource*, unsigned*, const Resource*, Resource*, unsigned,
                           unsigned) = nullptr;
  cuda::CUresult (*generate_)(void**, Resource*, unsigned) = nullptr;
  cuda::CUresult (*create_)(void**, void*, int, unsigned) = nullptr;
  cuda::CUresult (*destroy_)(void*) = nullptr;
  cuda::CUresult (*from_green_)(cuda::CUcontext*, void*) = nullptr;
  void* green_ = nullptr;
  cuda::CUcontext context_ = nullptr;
};

class Current {
 public:
  explicit Current(cuda::CUcontext context) {
    REQUIRE(driver_of_process()->table().cuCtxPushCurrent(context) == 0);
  }
  ~Current() {
    cuda::CUcontext popped = nullptr;
    driver_of_process()->table().cuCtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

void check_prepares_all(Rig& rig, const char* where) {
  const auto report = rig.runtime->prepare({});
  REQUIRE(report.has_value());
  INFO(where);
  CHECK(report->status().has_value());
  CHECK(report->num_loaded() == report->kernels.size());
  CHECK(report->kernels.size() > 40);
  std::printf("%s: %zu kernels in %.1f ms on %u threads (%.1f ms of fetching)\n", where,
              report->num_loaded(), report->milliseconds, report->num_threads,
              report->bring_milliseconds);
  const auto again = rig.runtime->prepare({});
  REQUIRE(again.has_value());
  CHECK(again->num_present() == again->kernels.size());
  std::printf("%s: again in %.3f ms\n", where, again->milliseconds);
}

TEST_CASE("all kernels are prepared in a primary, a created and a green context, each once") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  check_prepares_all(rig, "primary context");
  const std::uint64_t kernels = rig.runtime->load_counters().loads;
  REQUIRE(rig.selected->launch(call.args, nullptr));
  const auto first = call.output();
  call.check(first);
  CHECK(rig.runtime->load_counters().loads == kernels);

  cuda::CUcontext created = nullptr;
  REQUIRE(rig.extra.context_create(&created, 0, 0) == 0);  // becomes current
  check_prepares_all(rig, "created context");
  CHECK(rig.runtime->load_counters().loads == 2 * kernels);
  REQUIRE(rig.extra.context_destroy(created) == 0);

  const GreenContext green(rig.extra);
  if (!green.made()) {
    std::printf("this driver has no green contexts\n");
    return;
  }
  {
    const Current current(green.context());
    check_prepares_all(rig, "green context");
    CHECK(rig.runtime->load_counters().loads == 3 * kernels);
    cuda::CUstream stream = nullptr;
    REQUIRE(rig.extra.stream_create(&stream, kNonBlocking) == 0);
    call.poison();
    REQUIRE(rig.session->synchronize());
    REQUIRE(rig.selected->launch(call.args, stream));
    REQUIRE(driver_of_process()->table().cuStreamSynchronize(stream) == 0);
    rig.extra.stream_destroy(stream);
  }
  CHECK(call.output() == first);
  rig.selected.reset();
  rig.runtime.reset();  // unloads in the green context while that lives
}

TEST_CASE("after prepare a capture holds the fuse kernel and the launch, and replays are exact") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  const std::uint64_t scalars = rig.session->upload(std::vector<float>(3, 0.25F)).value();
  launcher::DeviceScales scales;
  scales.sm_scale = scalars;
  call.args.scales.sm_scale = 0.0F;
  call.args.bmm1_scale_log2 = scalars + 4;
  call.args.bmm2_scale = scalars + 8;
  const auto queue = [&](cuda::CUstream stream) -> Status {
    CUBIST_RETURN_IF_ERROR(rig.runtime->fuse_scales(rig.selected->problem(), scales, {},
                                                    scalars + 4, scalars + 8, stream));
    return rig.selected->launch(call.args, stream);
  };
  cuda::CUstream stream = nullptr;
  void* graph = nullptr;
  void* exec = nullptr;
  REQUIRE(rig.extra.stream_create(&stream, kNonBlocking) == 0);
  REQUIRE(rig.extra.begin_capture(stream, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  const Status refused = queue(stream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kCapture);
  CHECK_THAT(refused.error().message(), Contains("cubist_fuse_scales") && Contains("prepare"));
  REQUIRE(rig.extra.end_capture(stream, &graph) == 0);
  rig.extra.graph_destroy(graph);

  REQUIRE(rig.extra.begin_capture(stream, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  REQUIRE(rig.runtime->prepare({})->status());  // on threads, beside a capture in global mode
  REQUIRE(queue(stream));
  REQUIRE(rig.extra.end_capture(stream, &graph) == 0);
  REQUIRE(rig.extra.instantiate(&exec, graph, 0) == 0);
  std::set<std::vector<std::uint16_t>> outputs;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(rig.extra.graph_launch(exec, stream) == 0);
    if (i % 100 != 99) continue;
    REQUIRE(driver_of_process()->table().cuStreamSynchronize(stream) == 0);
    outputs.insert(call.output());
    call.poison();
    REQUIRE(rig.session->synchronize());
  }
  CHECK(outputs.size() == 1);
  REQUIRE(queue(nullptr));
  CHECK(call.output() == *outputs.begin());
  call.set_scales({0.25F, 1.0F});
  call.check(*outputs.begin());
  rig.extra.exec_destroy(exec);
  rig.extra.graph_destroy(graph);
  rig.extra.stream_destroy(stream);
}

TEST_CASE("a look behind the addresses passes what is right and names what is not") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  const Status right = rig.selected->check(call.args, nullptr);
  INFO((right ? "" : right.error().message()));
  CHECK(right.has_value());
  const auto refused = [&](auto change, const char* phrase) {
    launcher::CallArgs args = call.args;
    change(args);
    const Status status = rig.selected->check(args, nullptr);
    REQUIRE_FALSE(status.has_value());
    CHECK_THAT(status.error().message(), Contains(phrase));
    std::printf("%s\n", status.error().message().c_str());
  };
  static const std::vector<std::uint8_t> of_the_host(1 << 16);
  refused(
      [](launcher::CallArgs& args) {
        args.q = (reinterpret_cast<std::uint64_t>(of_the_host.data()) + 15) / 16 * 16;
      },
      "no memory that the CUDA driver knows");
  refused(
      [&](launcher::CallArgs& args) {
        args.seq_lens_kv = rig.session->upload(std::vector<std::int32_t>{4001, 1, 1}).value();
      },
      "seq_lens_kv[0] is 4001");
  refused(
      [&](launcher::CallArgs& args) {
        args.block_table = rig.session->upload(std::vector<std::int32_t>(3 * 125, 1 << 22)).value();
      },
      "up to page 4194304");
}

}  // namespace
}  // namespace cubist
