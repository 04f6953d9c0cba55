#include "launcher/prepare.h"

#include <set>

#include "rig.h"

using namespace cubist;
using Catch::Matchers::Contains;
using test::fake_cuda;
using test::kNothingHeld;
using test::Rig;

namespace {

/// Several kernels, each with bytes of its own.
struct Kernels {
  explicit Kernels(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = "kernel_" + std::to_string(i);
      bytes.push_back(test::fake_cubin(90, {name}));
      KernelRecord record;
      record.name = name;
      record.sha256 = sha256(bytes.back());
      record.size_bytes = bytes.back().size();
      record.traits.arch = {90, SmArch::Kind::kSpecific};
      records.push_back(record);
    }
    for (const KernelRecord& record : records) pointers.push_back(&record);
  }
  launcher::CubinSource source() {
    return [this](const KernelRecord& wanted) -> Result<VerifiedCubin> {
      const auto i = static_cast<std::size_t>(&wanted - records.data());
      return VerifiedCubin::verify(bytes[i], wanted.sha256, wanted.size_bytes, wanted.name);
    };
  }
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<KernelRecord> records;
  std::vector<const KernelRecord*> pointers;
};

}  // namespace

TEST_CASE("kernels are loaded once, whatever the number of threads, and found loaded afterwards") {
  for (const unsigned threads : {1U, 3U, 16U, 0U}) {
    Rig rig;
    Kernels kernels(20);
    {
      launcher::Launcher launcher(rig.driver, kernels.source());
      const auto report = launcher.prepare(kernels.pointers, threads);
      REQUIRE(report.has_value());
      CHECK(report->status().has_value());
      CHECK(report->num_loaded() == 20);
      CHECK(report->num_threads >= 1);
      if (threads > 0) CHECK(report->num_threads <= threads);
      CHECK(fake_cuda().leaks().modules == 20);
      CHECK(launcher.prepare(kernels.pointers, threads)->num_present() == 20);
      CHECK(launcher.counters().loads == 20);
      CHECK(fake_cuda().leaks().context_depth == 1);
    }
    CHECK(fake_cuda().leaks() == kNothingHeld);
  }
}

TEST_CASE("what is to be brought is told once, without what is loaded or does not fit") {
  Rig rig;
  Kernels kernels(5);
  kernels.records[1].traits.arch = {100, SmArch::Kind::kFamily};
  kernels.records[2].traits.smem = 1 << 20;
  launcher::Launcher launcher(rig.driver, kernels.source());
  REQUIRE(launcher.prepare(std::vector<const KernelRecord*>{kernels.pointers[0]}, 1).has_value());
  std::vector<std::string> told;
  const auto report =
      launcher.prepare(kernels.pointers, 2, [&](std::span<const KernelRecord* const> wanted) {
        for (const KernelRecord* record : wanted) told.push_back(record->name);
        return Status{};
      });
  REQUIRE(report.has_value());
  CHECK(told == std::vector<std::string>{"kernel_3", "kernel_4"});
  CHECK(report->num_present() == 1);
  CHECK(report->num_loaded() == 2);
  CHECK(report->num_failed() == 2);
  CHECK(report->status().error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(report->status().error().message(), Contains("'kernel_1'") && Contains("1 more of 5"));
}

TEST_CASE("a stopped fetch stops prepare; one that failed leaves the kernels to their source") {
  Rig rig;
  Kernels kernels(2);
  launcher::Launcher launcher(rig.driver, kernels.source());
  const auto stopped = launcher.prepare(kernels.pointers, 1, [](auto) -> Status {
    return fail(StatusCode::kInterrupted, "stopped");
  });
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().code() == StatusCode::kInterrupted);
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
  const auto failed = launcher.prepare(kernels.pointers, 1, [](auto) -> Status {
    return fail(StatusCode::kIo, "the store cannot be written");
  });
  REQUIRE(failed.has_value());
  CHECK(failed->num_loaded() == 2);
}

TEST_CASE("threads that cannot have the context leave their kernels to the caller's") {
  Rig rig;
  Kernels kernels(10);
  launcher::Launcher launcher(rig.driver, kernels.source());
  REQUIRE(launcher.current_context().has_value());
  fake_cuda().fail_function("cuCtxPushCurrent", cuda::CUDA_ERROR_OUT_OF_MEMORY);
  const auto report = launcher.prepare(kernels.pointers, 8);
  fake_cuda().fail_function("cuCtxPushCurrent", cuda::CUDA_SUCCESS);
  REQUIRE(report.has_value());
  CHECK(report->num_loaded() == 10);
  CHECK(report->num_threads == 1);
}

TEST_CASE("prepare on threads leaves captures of every thread valid") {
  Rig rig;
  Kernels kernels(10);
  launcher::Launcher launcher(rig.driver, kernels.source());
  fake_cuda().begin_capture(rig.stream);
  CHECK(launcher.prepare(kernels.pointers, 4)->num_loaded() == 10);
  CHECK(fake_cuda().end_capture(rig.stream));
}

TEST_CASE("no kernels are no work") {
  Rig rig;
  Kernels kernels(0);
  launcher::Launcher launcher(rig.driver, kernels.source());
  const auto report = launcher.prepare({}, 4);
  REQUIRE(report.has_value());
  CHECK(report->status().has_value());
  CHECK(report->num_threads == 1);
}
