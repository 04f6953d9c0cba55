// A kernel that faults: in a process of its own, since that costs the process its context.

#include <unistd.h>

#include <cstdio>

#include "launcher_rig.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;

/// Hidden, so that only the test below runs it, in a child.
constexpr const char* kInChild = "a launch that faults in this process";

TEST_CASE(kInChild, "[.]") {
  const driver::DriverTable& table = driver_of_process()->table();
  Rig rig;
  Call call(*rig.session, *rig.selected);
  REQUIRE(rig.selected->launch(call.args, nullptr));
  REQUIRE(table.cuStreamSynchronize(nullptr) == 0);

  launcher::CallArgs wrong = call.args;
  wrong.block_table = 0x10;  // no memory of anybody
  CHECK(rig.selected->launch(wrong, nullptr).has_value());
  CHECK(table.cuStreamSynchronize(nullptr) == cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  const Status after = rig.selected->launch(call.args, nullptr);
  REQUIRE_FALSE(after.has_value());
  CHECK(after.error().code() == StatusCode::kDriverError);
  CHECK_THAT(after.error().message(), Contains("(700)") && Contains("context is lost"));
  std::printf("after a fault: %s\n", after.error().message().c_str());
  const auto prepared = rig.runtime->prepare({});
  REQUIRE_FALSE(prepared.has_value());
  CHECK_THAT(prepared.error().message(), Contains("context is lost"));
}  // what is destroyed here must neither crash nor hang

TEST_CASE("a kernel's fault costs its process the context, and every later call says so") {
  char path[4096] = {};
  REQUIRE(::readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
  std::FILE* child = popen((std::string(path) + " '" + kInChild + "' 2>&1").c_str(), "r");
  REQUIRE(child != nullptr);
  std::string said;
  char line[1024];
  while (std::fgets(line, sizeof(line), child) != nullptr) said += line;
  INFO(said);
  CHECK(pclose(child) == 0);
  CHECK_THAT(said, Contains("All tests passed"));
}

}  // namespace
}  // namespace cubist
