#include "runtime/runtime.h"

#include <filesystem>
#include <thread>

#include "runtime/selected.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"
#include "support/scratch.h"

using namespace cubist;
using Catch::Matchers::Contains;
using test::Environment;
using test::fake_cuda;

namespace {

/// Our own manifest, an empty store, the stand-in as libcuda.
struct Rig {
  Rig() {
    fake_cuda().reset();
    runtime::RuntimeOptions options;
    options.manifests = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"};
    options.store_dir = store.path();
    options.offline = true;
    runtime = runtime::Runtime::open(options).value();
  }

  static AttentionProblem problem() {
    AttentionProblem problem;
    problem.head_dim_qk = 64;
    problem.num_q_heads = 16;
    problem.num_kv_heads = 2;
    problem.batch = 2;
    problem.max_kv_len = 4096;
    problem.page_size = 16;
    return problem;
  }
  static DeviceProfile h200() {
    DeviceProfile device;
    device.sm = 90;
    device.num_sms = 132;
    return device;
  }
  std::unique_ptr<runtime::Selected> select() const {
    return runtime->select(problem(), h200()).value();
  }
  /// The application's context and memory for one launch, all of it one allocation.
  static void make_context() { fake_cuda().set_current(fake_cuda().create_context(0)); }

  test::Scratch store;
  Environment libcuda{Environment::Values{{"CUBIST_LIBCUDA", test::fake_libcuda_path()}}};
  std::shared_ptr<runtime::Runtime> runtime;
};

std::size_t entries(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    count += entry.path().extension() == ".cubin" ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("opening, selecting and fetching make no driver call") {
  const Rig rig;
  const auto selected = rig.select();
  REQUIRE(selected->fetch().has_value());
  CHECK(entries(rig.store.path()) >= 1);
  CHECK_FALSE(selected->explain()->empty());
  CHECK(selected->workspace()->size > 0);
  CHECK(fake_cuda().calls().empty());
}

TEST_CASE("selections are counted, and the fallbacks among them") {
  const test::Scratch store;
  runtime::RuntimeOptions options;
  options.manifests = {CUBIST_SOURCE_DIR "/manifests/flashinfer-0.6.13.json"};
  options.store_dir = store.path();
  options.offline = true;
  const auto runtime = runtime::Runtime::open(options).value();
  DeviceProfile b200;
  b200.sm = 100;
  b200.num_sms = 148;
  AttentionProblem problem;
  problem.num_q_heads = problem.num_kv_heads = 16;
  problem.page_size = 64;
  REQUIRE(runtime->select(problem, b200).has_value());
  problem.page_size = 512;  // the rules want a page of 512 here; the run-time page kernels serve
  const auto fallback = runtime->select(problem, b200);
  REQUIRE(fallback.has_value());
  CHECK((*fallback)->selection().best().fallback == FallbackReason::kRuleFindsNoKernel);
  problem.num_q_heads = 0;
  REQUIRE_FALSE(runtime->select(problem, b200).has_value());
  CHECK(runtime->selection_counters().selections == 2);
  CHECK(runtime->selection_counters().fallbacks == 1);
}

TEST_CASE("a kernel is found by name and by hash, and only if it is there") {
  const Rig rig;
  const KernelRecord& record = *rig.select()->selection().best().record;
  CHECK((*rig.runtime->find_kernel(record.name))->sha256 == record.sha256);
  CHECK((*rig.runtime->find_kernel(record.sha256.hex()))->name == record.name);
  const auto missing = rig.runtime->find_kernel("nothing");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code() == StatusCode::kNotFound);
}

TEST_CASE("prepare fetches into the store, loads once, and reports the plan") {
  const Rig rig;
  Rig::make_context();
  const auto selected = rig.select();
  const auto plan = selected->prepare();
  REQUIRE(plan.has_value());
  CHECK(*plan == &selected->selection().best());
  CHECK(entries(rig.store.path()) == 1);
  REQUIRE(selected->prepare().has_value());
  CHECK(rig.runtime->load_counters().loads == 1);
}

TEST_CASE("a driver older than the manifest asks for is refused before anything is fetched") {
  const Environment old(Environment::Values{{"CUBIST_FAKE_CUDA_VERSION", "12080"}});
  const Rig rig;
  Rig::make_context();
  const auto selected = rig.select();
  const auto plan = selected->prepare();
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(plan.error().message(),
             Contains("needs a driver for CUDA 13.0 or later") && Contains("supports CUDA 12.8"));
  const std::vector<const KernelRecord*> named = {selected->selection().best().record};
  CHECK(rig.runtime->prepare(named)->status().error().code() == StatusCode::kDeviceMismatch);
  const auto all = rig.runtime->prepare({});
  REQUIRE_FALSE(all.has_value());
  CHECK(all.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(all.error().message(), Contains("no kernel of the manifests can be loaded here"));
  CHECK(entries(rig.store.path()) == 0);
}

TEST_CASE("two selections of one kernel share its module") {
  const Rig rig;
  Rig::make_context();
  const auto first = rig.select();
  const auto second = rig.select();
  REQUIRE(first->prepare().has_value());
  REQUIRE(second->prepare().has_value());
  CHECK(rig.runtime->load_counters().loads == 1);
}

TEST_CASE("everything is unloaded when the last selection goes, and not before") {
  Rig rig;
  Rig::make_context();
  auto selected = rig.select();
  REQUIRE(selected->prepare().has_value());
  rig.runtime.reset();
  CHECK(fake_cuda().leaks().modules == 1);
  selected.reset();
  CHECK(fake_cuda().leaks() == test::FakeLeaks{0, 0, 0, 1});
}

TEST_CASE("without libcuda a launch says which names were tried, and the rest works") {
  const Rig rig;
  const Environment none(Environment::Values{{"CUBIST_LIBCUDA", "/no/libcuda.so"}});
  const auto selected = rig.select();
  CHECK(selected->fetch().has_value());
  const auto prepared = selected->prepare();
  REQUIRE_FALSE(prepared.has_value());
  CHECK(prepared.error().code() == StatusCode::kDriverUnavailable);
  CHECK_THAT(prepared.error().message(), Contains("'/no/libcuda.so'"));
}

TEST_CASE("a bad argument is refused and nothing is launched") {
  const Rig rig;
  Rig::make_context();
  const auto selected = rig.select();
  const Status status = selected->launch({}, nullptr);
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(status.error().message(), Contains("q is NULL"));
  CHECK(fake_cuda().launches().empty());
}

TEST_CASE("a launch that would load during capture is refused and can be prepared for") {
  const Rig rig;
  Rig::make_context();
  const auto selected = rig.select();
  const cuda::CUstream stream = fake_cuda().create_stream();
  fake_cuda().begin_capture(stream);
  const Status status = selected->launch({}, stream);
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code() == StatusCode::kCapture);
  CHECK(fake_cuda().end_capture(stream));
  REQUIRE(selected->prepare().has_value());
  fake_cuda().begin_capture(stream);
  CHECK(selected->launch({}, stream).error().code() == StatusCode::kInvalidArgument);
  CHECK(fake_cuda().end_capture(stream));
}

TEST_CASE(
    "the child of a process that launched is told so; that of one that only selected is not") {
  const Rig rig;
  const auto selected = rig.select();
  CHECK(test::in_child([&] {
          Rig::make_context();
          return selected->prepare() ? std::string("ok") : std::string("refused");
        }) == "ok");
  Rig::make_context();
  REQUIRE(selected->prepare().has_value());
  CHECK(test::in_child([&] {
          return std::string(to_string(selected->prepare().error().code()));
        }) == "forked");
}

TEST_CASE("a name means what a bundle installed in the store that the options name") {
  const test::Scratch store;
  const test::Scratch other;
  const Environment env(Environment::Values{{"CUBIST_STORE", other.path()}});
  std::filesystem::create_directory(store / "manifests");
  std::filesystem::copy(CUBIST_SOURCE_DIR "/manifests/cubist-decode.json",
                        store / "manifests/brought.json");
  runtime::RuntimeOptions options;
  options.manifests = {"brought"};
  CHECK(runtime::Runtime::open(options).error().code() == StatusCode::kNotFound);
  options.store_dir = store.path();
  const auto open = runtime::Runtime::open(options);
  REQUIRE(open);
  CHECK((*open)->num_kernels() > 0);
}

TEST_CASE("opening without a manifest, or with a bad one, fails by name") {
  CHECK(runtime::Runtime::open({}).error().code() == StatusCode::kInvalidArgument);
  runtime::RuntimeOptions options;
  options.manifests = {CUBIST_SOURCE_DIR "/CMakeLists.txt"};
  CHECK(runtime::Runtime::open(options).error().code() == StatusCode::kManifestInvalid);
}
