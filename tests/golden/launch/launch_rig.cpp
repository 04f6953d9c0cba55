#include "launch_rig.h"

#include "driver/driver.h"
#include "support/catch.h"
#include "support/made_trtllm_gen.h"

namespace cubist::test {

LaunchRig::LaunchRig(const std::string& release, const std::set<std::string>& kernels,
                     std::uint32_t param_bytes)
    : environment_(Environment::Values{{"CUBIST_LIBCUDA", fake_libcuda_path()},
                                       {"CUBIST_MANIFESTS", CUBIST_SOURCE_DIR "/manifests"}}) {
  fake_cuda().reset();
  fake_cuda().set_devices({{"Fake B200", 100, 148, 232448}});
  runtime::RuntimeOptions options;
  options.manifests = {
      write_trtllm_gen(CUBIST_SOURCE_DIR, folder_.path(), release, kernels, param_bytes)};
  options.store_dir = store_.path();
  options.offline = true;
  auto opened = runtime::Runtime::open(options);
  if (!opened) FAIL(opened.error().message());
  runtime_ = *std::move(opened);
  // The application's own context.
  auto driver = driver::Driver::open({fake_libcuda_path()}).value();
  REQUIRE(driver->init());
  fake_cuda().set_current(fake_cuda().create_context(0));
  stream_ = fake_cuda().create_stream();
  // The recordings' own answers about clusters choose; here all of them fit.
  fake_cuda().set_max_active_clusters(1 << 20);
}

}  // namespace cubist::test
