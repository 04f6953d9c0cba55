#include "gpu/decode_modules.h"

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/sha256.h"
#include "manifest/parse.h"

namespace cubist::test {

using namespace cubist::cuda;  // NOLINT(google-build-using-namespace)

namespace {

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(EXIT_FAILURE);
}

DecodeVariant variant_of(const KernelRecord& record) {
  const KernelTraits& traits = record.traits;
  return {record.name,        traits.dtype_q,        traits.dtype_k,
          traits.head_dim_qk, traits.head_dim_vo,    traits.tile_q,
          traits.threads,     traits.smem,           traits.scheduler == TileScheduler::kPersistent,
          traits.dtype_o,     traits.dynamic_dtype_o};
}

std::vector<std::uint8_t> read_verified(const std::string& path, const KernelRecord& record) {
  Result<std::vector<std::uint8_t>> bytes = read_file(path, record.size_bytes);
  if (!bytes) fail(bytes.error().message());
  if (sha256(*bytes) != record.sha256) fail(path + ": its sha256 is not the manifest's");
  return *bytes;
}

LoadedVariant load(const Device& device, const std::string& path, const KernelRecord& record) {
  const std::vector<std::uint8_t> bytes = read_verified(path, record);
  const driver::DriverTable& table = device.table();
  LoadedVariant loaded = {variant_of(record), nullptr};
  CUmodule module = nullptr;
  device.check(table.cuModuleLoadData(&module, bytes.data()), "cuModuleLoadData");
  device.check(table.cuModuleGetFunction(&loaded.function, module, record.name.c_str()),
               "cuModuleGetFunction");
  device.check(
      table.cuFuncSetAttribute(loaded.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(record.traits.smem)),
      "cuFuncSetAttribute");
  return loaded;
}

}  // namespace

std::vector<LoadedVariant> load_variants(const Device& device, const std::string& manifest,
                                         const std::string& only) {
  const Result<Manifest> parsed = load_manifest(manifest);
  if (!parsed) fail(parsed.error().message());
  const std::uint32_t sm = device.profile().sm;
  std::vector<LoadedVariant> kernels;
  for (const Pack& pack : parsed->packs) {
    for (const KernelRecord& record : pack.kernels) {
      if (record.name.find(only) == std::string::npos || !runs_on(record.traits.arch, sm)) continue;
      const std::string folder =
          manifest.substr(0, manifest.rfind('/') + 1) + pack.sources.at(0).location + "/";
      kernels.push_back(load(device, folder + record.file(), record));
    }
  }
  if (kernels.empty()) std::fprintf(stderr, "no kernel of %s is for this GPU\n", manifest.c_str());
  return kernels;
}

void launch(const Device& device, const LoadedVariant& kernel, const CubistDecodeParams& params,
            std::array<unsigned, 3> grid, bool pdl) {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = grid[2];
  config.blockDimX = kernel.variant.threads;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = kernel.variant.smem;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  CubistDecodeParams copy = params;
  void* arguments[] = {&copy};
  device.check(device.table().cuLaunchKernelEx(&config, kernel.function, arguments, nullptr),
               "cuLaunchKernelEx");
}

}  // namespace cubist::test
