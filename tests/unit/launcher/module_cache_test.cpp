#include "launcher/module_cache.h"

#include <thread>
#include <vector>

#include "rig.h"

using namespace cubist;
using Catch::Matchers::Contains;
using launcher::ContextInfo;
using launcher::ContextTable;
using launcher::LoadedKernel;
using launcher::ModuleCache;
using test::fake_cuda;
using test::kNothingHeld;
using test::Rig;

namespace {

const ContextInfo& current(ContextTable& contexts, Rig& rig) {
  return *contexts.current(*rig.driver).value();
}

}  // namespace

TEST_CASE("a kernel is loaded once a context under any number of threads") {
  Rig rig;
  {
    ContextTable contexts;
    ModuleCache cache(rig.driver, rig.source());
    fake_cuda().set_load_delay_ms(20);
    std::vector<std::thread> threads;
    std::vector<const LoadedKernel*> found(8, nullptr);
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] {
        fake_cuda().set_current(rig.context);
        for (int again = 0; again < 100; ++again) {
          found[i] = cache.load(rig.record, current(contexts, rig), &rig.stream).value();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const LoadedKernel* kernel : found) CHECK(kernel == found[0]);
    CHECK(fake_cuda().count("cuModuleLoadData") == 1);
    CHECK(rig.cubins_asked == 1);
    CHECK(cache.counters().loads == 1);
    CHECK(cache.counters().nanoseconds >= 20000000);
  }
  CHECK(fake_cuda().leaks() == kNothingHeld);
}

TEST_CASE("each context has its own module, unloaded with that context current") {
  Rig rig;
  const cuda::CUcontext other = fake_cuda().create_context(0);
  {
    ContextTable contexts;
    ModuleCache cache(rig.driver, rig.source());
    const auto* first = cache.load(rig.record, current(contexts, rig), &rig.stream).value();
    fake_cuda().set_current(other);
    const auto* second = cache.load(rig.record, current(contexts, rig), nullptr).value();
    CHECK(first->module != second->module);
    CHECK(fake_cuda().leaks().modules == 2);
  }
  CHECK(fake_cuda().count("cuModuleUnload") == 2);
  CHECK(fake_cuda().leaks() == kNothingHeld);
}

TEST_CASE("a new context at a destroyed one's address loads anew") {
  Rig rig;
  {
    ContextTable contexts;
    ModuleCache cache(rig.driver, rig.source());
    REQUIRE(cache.load(rig.record, current(contexts, rig), nullptr).has_value());
    fake_cuda().destroy_context(rig.context);
    const cuda::CUcontext again = fake_cuda().create_context(0);
    REQUIRE(again == rig.context);
    fake_cuda().set_current(again);
    REQUIRE(cache.load(rig.record, current(contexts, rig), nullptr).has_value());
    CHECK(cache.counters().loads == 2);
    CHECK(fake_cuda().leaks().modules == 1);
  }
  CHECK(fake_cuda().count("cuModuleUnload") == 1);
  CHECK(fake_cuda().leaks() == kNothingHeld);
}

TEST_CASE("shared memory is opted in above 48 KiB and not at 48 KiB") {
  for (const std::uint32_t smem : {0U, 49152U, 49153U, 232448U}) {
    Rig rig;
    rig.record.traits.smem = smem;
    rig.selection.plans[0].smem = smem;
    ContextTable contexts;
    ModuleCache cache(rig.driver, rig.source());
    REQUIRE(cache.load(rig.record, current(contexts, rig), &rig.stream).has_value());
    CHECK(fake_cuda().count("cuFuncSetAttribute") == (smem > 49152 ? 1 : 0));
  }
}

TEST_CASE("a kernel of the cluster reduction is allowed large clusters at load") {
  Rig rig;
  rig.record.traits.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory;
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  REQUIRE(cache.load(rig.record, current(contexts, rig), &rig.stream).has_value());
  CHECK(fake_cuda().count("cuFuncSetAttribute") == 2);
}

TEST_CASE("a load during capture is refused with the kernel's name and the capture stays valid") {
  Rig rig;
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  fake_cuda().begin_capture(rig.stream);
  const auto refused = cache.load(rig.record, current(contexts, rig), &rig.stream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kCapture);
  CHECK_THAT(refused.error().message(), Contains("'decode_one'") && Contains("prepare"));
  CHECK(rig.cubins_asked == 0);
  CHECK(fake_cuda().end_capture(rig.stream));
  CHECK(cache.load(rig.record, current(contexts, rig), &rig.stream).has_value());
}

TEST_CASE("the legacy stream is refused while another stream captures") {
  Rig rig;
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  fake_cuda().begin_capture(rig.stream);
  const cuda::CUstream legacy = nullptr;
  const auto refused = cache.load(rig.record, current(contexts, rig), &legacy);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kCapture);
  CHECK_THAT(refused.error().message(), Contains("prepare") && Contains("(906)"));
  CHECK(fake_cuda().end_capture(rig.stream));
}

TEST_CASE("a load for one stream leaves another stream's capture valid") {
  Rig rig;
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  const cuda::CUstream other = fake_cuda().create_stream();
  fake_cuda().begin_capture(other);
  CHECK(cache.load(rig.record, current(contexts, rig), &rig.stream).has_value());
  CHECK(fake_cuda().end_capture(other));
  CHECK(fake_cuda().count("cuThreadExchangeStreamCaptureMode") == 2);
}

TEST_CASE("a loaded kernel is found during capture") {
  Rig rig;
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  const auto* loaded = cache.load(rig.record, current(contexts, rig), &rig.stream).value();
  fake_cuda().begin_capture(rig.stream);
  CHECK(cache.load(rig.record, current(contexts, rig), &rig.stream).value() == loaded);
  CHECK(fake_cuda().end_capture(rig.stream));
}

TEST_CASE("a load that is for no stream leaves every capture valid") {
  Rig rig;
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  fake_cuda().begin_capture(rig.stream);
  CHECK(cache.load(rig.record, current(contexts, rig), nullptr).has_value());
  CHECK(fake_cuda().end_capture(rig.stream));
  CHECK(fake_cuda().count("cuStreamIsCapturing") == 0);
}

TEST_CASE("a cubin without the function is the manifest's fault and leaves no module") {
  Rig rig(90, {"another_function"});
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  const auto refused = cache.load(rig.record, current(contexts, rig), &rig.stream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kManifestInvalid);
  CHECK_THAT(refused.error().message(),
             Contains("'decode_one'") && Contains(rig.record.sha256.hex()));
  CHECK(fake_cuda().leaks() == kNothingHeld);
  CHECK(cache.counters().failed_loads == 1);
}

TEST_CASE("a cubin for another architecture is a device mismatch") {
  Rig rig(100, {"decode_one"});
  ContextTable contexts;
  ModuleCache cache(rig.driver, rig.source());
  const auto refused = cache.load(rig.record, current(contexts, rig), &rig.stream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(refused.error().message(), Contains("'decode_one'") && Contains("(209)"));
}

TEST_CASE("a source that has no bytes is asked again by the next load") {
  Rig rig;
  ContextTable contexts;
  int asked = 0;
  ModuleCache cache(rig.driver, [&](const KernelRecord& record) -> Result<VerifiedCubin> {
    if (++asked == 1) return fail(StatusCode::kOffline, "missing");
    return rig.source()(record);
  });
  const auto refused = cache.load(rig.record, current(contexts, rig), &rig.stream);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kOffline);
  CHECK(cache.load(rig.record, current(contexts, rig), &rig.stream).has_value());
  CHECK(asked == 2);
}

TEST_CASE("without a current context the error says what to do") {
  Rig rig;
  fake_cuda().set_current(nullptr);
  ContextTable contexts;
  const auto refused = contexts.current(*rig.driver);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kDriverError);
  CHECK_THAT(refused.error().message(), Contains("cuCtxSetCurrent"));
}
