// Published sm_100 cubins on a real GPU that is none: refused before anything is fetched or loaded,
// with words that name both. Exit code 77: no GPU, or a Blackwell one.

#include <cstdio>
#include <string>

#include "device.h"
#include "runtime/runtime.h"
#include "runtime/selected.h"
#include "support/scratch.h"

namespace cubist {
namespace {

int failures = 0;

void check(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  ++failures;
}

void check_refused(const char* call, const Error& error, const DeviceProfile& here) {
  const std::string text = error.message();
  std::printf("%s: %s\n", call, text.c_str());
  check(error.code() == StatusCode::kDeviceMismatch, "the status is device_mismatch");
  for (const std::string& words :
       {std::string("fmhaSm100"), std::string("is for sm_100"), fmt::format("is sm_{}", here.sm),
        here.name, std::string("select for this device")}) {
    check(text.find(words) != std::string::npos, fmt::format("{} says '{}'", call, words));
  }
}

/// A launch and a prepare of a problem that was selected for a B200.
void refuse(const std::string& manifest, const DeviceProfile& here) {
  const test::Scratch store;
  runtime::RuntimeOptions options;
  options.manifests = {CUBIST_SOURCE_DIR "/manifests/" + manifest + ".json"};
  options.store_dir = store.path();
  options.offline = true;  // a fetch would fail by another status
  const auto runtime = runtime::Runtime::open(options).value();
  DeviceProfile b200;
  b200.sm = 100;
  b200.num_sms = 148;
  AttentionProblem problem;
  problem.num_q_heads = 64;
  const auto selected = runtime->select(problem, b200).value();
  const Status launched = selected->launch({}, nullptr);
  check(!launched, "the launch is refused");
  if (!launched) check_refused("launch", launched.error(), here);
  const auto prepared = selected->prepare();
  check(!prepared, "prepare is refused");
  if (!prepared) check_refused("prepare", prepared.error(), here);
  check(runtime->load_counters().loads == 0 && runtime->load_counters().failed_loads == 0,
        "nothing was loaded");
}

}  // namespace
}  // namespace cubist

int main() {
  const auto device = cubist::test::Device::open();
  if (device == nullptr) return 77;
  if (device->profile().sm / 10 == 10) {
    std::fprintf(stderr, "skipped: this GPU runs sm_100 cubins\n");
    return 77;
  }
  device->make_current();
  cubist::refuse("flashinfer-0.6.13", device->profile());
  cubist::refuse("flashinfer-0.6.8", device->profile());
  std::printf("%s\n", cubist::failures == 0 ? "all refused" : "FAILED");
  return cubist::failures == 0 ? 0 : 1;
}
