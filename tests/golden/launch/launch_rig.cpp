#include "launch_rig.h"

#include <filesystem>
#include <fstream>

#include "driver/driver.h"
#include "manifest/parse.h"
#include "manifest/write.h"
#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist::test {
namespace {

std::vector<std::uint8_t> cubin_of(const KernelRecord& record, std::uint32_t param_bytes) {
  SyntheticKernel kernel;
  kernel.name = record.name;
  kernel.params = {param_bytes};
  kernel.threads = {record.traits.threads, 1, 1};
  SyntheticCubin cubin;
  cubin.arch = record.traits.arch;
  cubin.kernels = {kernel};
  return make_cubin(cubin).bytes;
}

void write_file(const std::string& path, const char* bytes, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
}

/// The shipped manifest with made files for some kernels; written beside them.
std::string write_release(const std::string& folder, const std::string& release,
                          const std::set<std::string>& kernels, std::uint32_t param_bytes) {
  auto manifest =
      load_manifest(CUBIST_SOURCE_DIR "/manifests/flashinfer-" + release + ".json").value();
  for (Pack& pack : manifest.packs) {
    const std::uint32_t declared =
        param_bytes != 0 ? param_bytes : param_layout_bytes(pack.param_layout);
    pack.sources = {{Source::Kind::kFolder, "cubins", ""}};
    for (KernelRecord& record : pack.kernels) {
      if (!kernels.contains(std::string(record.name))) continue;
      const std::vector<std::uint8_t> bytes = cubin_of(record, declared);
      record.sha256 = sha256(bytes);
      record.size_bytes = bytes.size();
      const std::string path = folder + "/cubins/" + std::string(record.path);
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      write_file(path, reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  const std::string text = write_manifest(manifest);
  write_file(folder + "/manifest.json", text.data(), text.size());
  return folder + "/manifest.json";
}

}  // namespace

LaunchRig::LaunchRig(const std::string& release, const std::set<std::string>& kernels,
                     std::uint32_t param_bytes)
    : environment_(Environment::Values{{"CUBIST_LIBCUDA", fake_libcuda_path()},
                                       {"CUBIST_MANIFESTS", CUBIST_SOURCE_DIR "/manifests"}}) {
  fake_cuda().reset();
  fake_cuda().set_devices({{"Fake B200", 100, 148, 232448}});
  runtime::RuntimeOptions options;
  options.manifests = {write_release(folder_.path(), release, kernels, param_bytes)};
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
