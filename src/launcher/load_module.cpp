#include "launcher/load_module.h"

#include "launcher/elf_extent.h"

namespace cubist::launcher {
namespace {

// Above this, dynamic shared memory needs the per-function opt-in. Unit: bytes.
// Source: CUDA driver API, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
constexpr std::uint32_t kSharedMemOptInBytes = 48 * 1024;

/// While it lives, this thread may make calls that would otherwise spoil captures on other threads
/// (and be refused).
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const driver::Driver& driver) : driver_(driver), relaxed_(exchange()) {}
  ~RelaxedCapture() {
    if (relaxed_) exchange();
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  bool exchange() {
    const auto function = driver_.table().cuThreadExchangeStreamCaptureMode;
    return function != nullptr && function(&mode_) == cuda::CUDA_SUCCESS;
  }

  const driver::Driver& driver_;
  cuda::CUstreamCaptureMode mode_ = cuda::CU_STREAM_CAPTURE_MODE_RELAXED;
  bool relaxed_;
};

Status set_attribute(const driver::Driver& driver, cuda::CUfunction function,
                     cuda::CUfunction_attribute attribute, int value) {
  return driver.check(driver.table().cuFuncSetAttribute(function, attribute, value),
                      "cuFuncSetAttribute");
}

Status set_attributes(const driver::Driver& driver, const KernelTraits& traits,
                      cuda::CUfunction function) {
  if (traits.smem > kSharedMemOptInBytes) {
    CUBIST_RETURN_IF_ERROR(set_attribute(driver, function,
                                         cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(traits.smem)));
  }
  // Only the cluster reduction has more than 8 CTAs a cluster, the limit of what needs no opt-in.
  if (traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory) {
    CUBIST_RETURN_IF_ERROR(set_attribute(
        driver, function, cuda::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  }
  return {};
}

}  // namespace

Result<ModuleAndFunction> load_module(const driver::Driver& driver, const VerifiedCubin& cubin,
                                      const KernelRecord& record) {
  CUBIST_RETURN_IF_ERROR(check_elf_extent(cubin.bytes(), record.name));

  const RelaxedCapture relaxed(driver);
  cuda::CUmodule loaded = nullptr;
  Status status = driver.check(driver.table().cuModuleLoadData(&loaded, cubin.bytes().data()),
                               "cuModuleLoadData");
  if (!status) return forward_error(status, fmt::format("kernel '{}'", record.name));
  UniqueModule module(driver, loaded);

  cuda::CUfunction function = nullptr;
  const cuda::CUresult found =
      driver.table().cuModuleGetFunction(&function, module.get(), record.name.c_str());
  if (found == cuda::CUDA_ERROR_NOT_FOUND) {
    return fail(
        StatusCode::kManifestInvalid,
        "the manifest names the function '{}', but the cubin with its sha256 {} has none of "
        "that name",
        record.name, record.sha256.hex());
  }
  status = driver.check(found, "cuModuleGetFunction");
  if (status) status = set_attributes(driver, record.traits, function);
  if (!status) return forward_error(status, fmt::format("kernel '{}'", record.name));
  return ModuleAndFunction{module.release(), function};
}

}  // namespace cubist::launcher
