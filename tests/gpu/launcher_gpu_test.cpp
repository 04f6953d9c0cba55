// The launcher on a real driver: threads, contexts, capture and replay, PDL, scales, fork. Our own
// kernels through manifest, store and selector; results held against float64 and against each
// other. Exit code 77: no GPU, or none the kernels are for.

// First, since it has Catch define its runner.
#include "run_unless.h"
//
#include <cstdio>
#include <thread>
#include <vector>

#include "launcher/scales.h"
#include "launcher_rig.h"
#include "support/child.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a launch equals float64, and again to the bit with PDL off and with device scales") {
  std::vector<std::uint16_t> first;
  for (const bool pdl : {true, false}) {
    Rig rig(pdl);
    Call call(*rig.session, *rig.selected);
    REQUIRE(rig.selected->launch(call.args, nullptr));
    const auto by_host = call.output();
    call.check(by_host);
    if (first.empty()) first = by_host;
    CHECK(by_host == first);

    launcher::CallArgs by_pointer = call.args;
    const std::vector<float> scalars = {launcher::scale_log2(double{call.args.scales.sm_scale}),
                                        1.0F};
    by_pointer.scales.sm_scale = 0.0F;
    by_pointer.bmm1_scale_log2 = rig.session->upload(scalars).value();
    by_pointer.bmm2_scale = by_pointer.bmm1_scale_log2 + sizeof(float);
    call.poison();
    REQUIRE(rig.selected->launch(by_pointer, nullptr));
    CHECK(call.output() == first);
  }
}

TEST_CASE("8 threads on 8 streams load once and all get the same bits") {
  Rig rig;
  cuda::CUcontext context = nullptr;
  REQUIRE(driver_of_process()->table().cuCtxGetCurrent(&context) == 0);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<Call>(*rig.session, *rig.selected));
  }
  std::vector<std::thread> threads;
  std::vector<std::string> failures(8);
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      driver_of_process()->table().cuCtxPushCurrent(context);
      cuda::CUstream stream = nullptr;
      rig.extra.stream_create(&stream, kNonBlocking);
      for (int again = 0; again < 100; ++again) {
        const Status status = rig.selected->launch(calls[i]->args, stream);
        if (!status) failures[i] = status.error().message();
      }
      driver_of_process()->table().cuStreamSynchronize(stream);
      rig.extra.stream_destroy(stream);
      cuda::CUcontext popped = nullptr;
      driver_of_process()->table().cuCtxPopCurrent(&popped);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
  CHECK(rig.runtime->load_counters().loads == 1);
  const auto first = calls[0]->output();
  calls[0]->check(first);
  for (const auto& call : calls) CHECK(call->output() == first);
}

TEST_CASE("a load during capture is refused, the capture stays valid, and replays are exact") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  cuda::CUstream stream = nullptr;
  void* graph = nullptr;
  void* exec = nullptr;
  REQUIRE(rig.extra.stream_create(&stream, kNonBlocking) == 0);
  REQUIRE(rig.extra.begin_capture(stream, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  const Status refused = rig.selected->launch(call.args, stream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kCapture);
  CHECK_THAT(refused.error().message(), Contains("prepare"));
  CHECK(rig.extra.end_capture(stream, &graph) == 0);
  rig.extra.graph_destroy(graph);

  REQUIRE(rig.selected->prepare());
  REQUIRE(rig.extra.begin_capture(stream, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  REQUIRE(rig.selected->launch(call.args, stream));
  REQUIRE(rig.extra.end_capture(stream, &graph) == 0);
  REQUIRE(rig.extra.instantiate(&exec, graph, 0) == 0);
  for (int i = 0; i < 1000; ++i) REQUIRE(rig.extra.graph_launch(exec, stream) == 0);
  REQUIRE(driver_of_process()->table().cuStreamSynchronize(stream) == 0);
  const auto replayed = call.output();
  call.check(replayed);
  call.poison();
  REQUIRE(rig.selected->launch(call.args, nullptr));
  CHECK(call.output() == replayed);
  rig.extra.exec_destroy(exec);
  rig.extra.graph_destroy(graph);
  rig.extra.stream_destroy(stream);
}

TEST_CASE("a load leaves the capture of another stream valid") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  cuda::CUstream capturing = nullptr;
  cuda::CUstream other = nullptr;
  void* graph = nullptr;
  REQUIRE(rig.extra.stream_create(&capturing, kNonBlocking) == 0);
  REQUIRE(rig.extra.stream_create(&other, kNonBlocking) == 0);
  REQUIRE(rig.extra.begin_capture(capturing, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  REQUIRE(rig.selected->launch(call.args, other));
  CHECK(rig.extra.end_capture(capturing, &graph) == 0);
  rig.extra.graph_destroy(graph);
  REQUIRE(driver_of_process()->table().cuStreamSynchronize(other) == 0);
  call.check(call.output());
  rig.extra.stream_destroy(capturing);
  rig.extra.stream_destroy(other);
}

TEST_CASE("a second context has its own module, and its end takes that module with it") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  REQUIRE(rig.selected->launch(call.args, nullptr));
  const auto first = call.output();
  cuda::CUcontext other = nullptr;
  REQUIRE(rig.extra.context_create(&other, 0, 0) == 0);  // becomes current
  REQUIRE(rig.selected->prepare());
  CHECK(rig.runtime->load_counters().loads == 2);
  REQUIRE(rig.extra.context_destroy(other) == 0);  // the primary one is current again
  call.poison();
  REQUIRE(rig.selected->launch(call.args, nullptr));
  CHECK(call.output() == first);
  CHECK(rig.runtime->load_counters().loads == 2);
  REQUIRE(rig.extra.context_create(&other, 0, 0) == 0);
  REQUIRE(rig.selected->prepare());
  CHECK(rig.runtime->load_counters().loads == 3);
  REQUIRE(rig.extra.context_destroy(other) == 0);
}

TEST_CASE("a stream of another context is an error, and the next launch is fine") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  REQUIRE(rig.selected->prepare());
  cuda::CUcontext other = nullptr;
  cuda::CUcontext popped = nullptr;
  cuda::CUstream stream = nullptr;
  REQUIRE(rig.extra.context_create(&other, 0, 0) == 0);
  REQUIRE(rig.extra.stream_create(&stream, kNonBlocking) == 0);
  REQUIRE(driver_of_process()->table().cuCtxPopCurrent(&popped) == 0);
  const Status status = rig.selected->launch(call.args, stream);
  CHECK_FALSE(status.has_value());
  if (!status) std::printf("stream of another context: %s\n", status.error().message().c_str());
  REQUIRE(rig.extra.context_destroy(other) == 0);
  REQUIRE(rig.selected->launch(call.args, nullptr));
  call.check(call.output());
}

TEST_CASE("published sm_100 kernels are refused on this GPU before anything is fetched or loaded") {
  Rig rig;
  runtime::RuntimeOptions options;
  options.manifests = {CUBIST_SOURCE_DIR "/manifests/flashinfer-0.6.13.json"};
  options.store_dir = rig.store.path();
  options.offline = true;
  const auto published = runtime::Runtime::open(options).value();
  DeviceProfile b200;
  b200.sm = 100;
  b200.num_sms = 148;
  const auto selected = published->select(rig.selected->problem(), b200).value();
  const auto refused = selected->prepare();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(refused.error().message(), Contains("sm_100") && Contains("sm_90"));
  std::printf("published kernel here: %s\n", refused.error().message().c_str());
}

TEST_CASE("a forked child gets its own error and the parent goes on") {
  Rig rig;
  Call call(*rig.session, *rig.selected);
  REQUIRE(rig.selected->launch(call.args, nullptr));
  CHECK(test::in_child([&] {
          const Status status = rig.selected->launch(call.args, nullptr);
          return std::string(status ? "ok" : to_string(status.error().code()));
        }) == "forked");
  CHECK(rig.selected->launch(call.args, nullptr).has_value());
  call.check(call.output());
}

/// Why there is nothing to test here; empty if there is.
std::string reason_to_skip() {
  const auto driver = driver::Driver::open();
  if (!driver) return driver.error().message();
  const auto device = driver::query_device(**driver, 0);
  if (!device) return device.error().message();
  if (!runs_on({90, SmArch::Kind::kSpecific}, device->sm)) {
    return fmt::format("the shipped kernels are for sm_90a, this GPU is sm_{}", device->sm);
  }
  return {};
}

}  // namespace
}  // namespace cubist

int main(int argc, char** argv) {
  return cubist::test::run_unless(cubist::reason_to_skip(), argc, argv);
}
