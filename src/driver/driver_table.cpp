#include "driver/driver_table.h"

#include <dlfcn.h>

#include <cstdlib>

#include "model/cuda_version.h"

namespace cubist::driver {
namespace {

struct Library {
  void* handle = nullptr;
  std::string name;
};

Result<Library> open_library(const std::vector<std::string>& names) {
  std::string reasons;
  for (const std::string& name : names) {
    // RTLD_NODELETE: the driver starts threads and exit handlers of its own.
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return Library{handle, name};
    const char* reason = dlerror();
    reasons += fmt::format("{}'{}' ({})", reasons.empty() ? "" : ", ", name,
                           reason == nullptr ? "no reason given" : reason);
  }
  return fail(
      StatusCode::kDriverUnavailable,
      "no CUDA driver library could be opened; tried {}. Install the NVIDIA driver, or give "
      "the container access to it (for example --gpus all); everything but a launch works "
      "without it",
      reasons);
}

template <class Function>
Function find_symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library.handle, name));
}

Result<void*> resolve(GetProcAddress get_proc_address, const char* name, bool required,
                      const Library& library) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = get_proc_address(name, &function, kPinnedCudaVersion, 0, &found);
  if (result == CUDA_SUCCESS && function != nullptr) return function;
  if (!required) return nullptr;
  return fail(
      StatusCode::kDriverUnavailable,
      "'{}' has no function {} (cuGetProcAddress answered {}, symbol status {}); a driver of "
      "CUDA {} or later is needed",
      library.name, name, static_cast<int>(result), static_cast<int>(found),
      cuda_version_text(kPinnedCudaVersion));
}

}  // namespace

std::vector<std::string> libcuda_names() {
  const char* other = std::getenv("CUBIST_LIBCUDA");
  if (other != nullptr && *other != '\0') return {other};
  return {"libcuda.so.1", "libcuda.so"};
}

Result<DriverTable> load_driver_table(const std::vector<std::string>& names) {
  CUBIST_ASSIGN_OR_RETURN(const Library library, open_library(names));

  DriverTable table;
  table.library = library.name;
  const auto get_version = find_symbol<CUresult (*)(int*)>(library, "cuDriverGetVersion");
  if (get_version == nullptr) {
    return fail(StatusCode::kDriverUnavailable,
                "'{}' is no CUDA driver library: it has no cuDriverGetVersion", library.name);
  }
  if (const CUresult result = get_version(&table.driver_version); result != CUDA_SUCCESS) {
    return fail(StatusCode::kDriverUnavailable, "'{}': cuDriverGetVersion failed with {}{}",
                library.name, static_cast<int>(result),
                result == CUDA_ERROR_STUB_LIBRARY
                    ? ": this is the toolkit's stub for linking, not a driver"
                    : "");
  }
  const auto get_proc_address = find_symbol<GetProcAddress>(library, "cuGetProcAddress_v2");
  if (get_proc_address == nullptr || table.driver_version < kPinnedCudaVersion) {
    return fail(StatusCode::kDriverUnavailable,
                "the driver behind '{}' supports CUDA {}, but {} or later is needed; update the "
                "NVIDIA driver",
                library.name, cuda_version_text(table.driver_version),
                cuda_version_text(kPinnedCudaVersion));
  }

  constexpr bool REQUIRED = true;
  constexpr bool OPTIONAL = false;
#define CUBIST_DRIVER_SYMBOL(need, name, parameters)                          \
  {                                                                           \
    CUBIST_ASSIGN_OR_RETURN(void* const function,                             \
                            resolve(get_proc_address, #name, need, library)); \
    table.name = reinterpret_cast<decltype(table.name)>(function);            \
  }
#include "driver/symbols.def"
#undef CUBIST_DRIVER_SYMBOL
  return table;
}

}  // namespace cubist::driver
