#pragma once

#include "base/result.h"
#include "driver/driver.h"
#include "model/kernel_record.h"
#include "model/verified_cubin.h"

namespace cubist::launcher {

/// A module in the current context, unloaded again unless it is released.
class UniqueModule {
 public:
  UniqueModule(const driver::Driver& driver, cuda::CUmodule module)
      : driver_(driver), module_(module) {}
  ~UniqueModule() {
    if (module_ != nullptr) driver_.table().cuModuleUnload(module_);
  }
  UniqueModule(const UniqueModule&) = delete;
  UniqueModule& operator=(const UniqueModule&) = delete;

  cuda::CUmodule get() const { return module_; }
  cuda::CUmodule release() { return std::exchange(module_, nullptr); }

 private:
  const driver::Driver& driver_;
  cuda::CUmodule module_;
};

struct ModuleAndFunction {
  cuda::CUmodule module = nullptr;
  cuda::CUfunction function = nullptr;
};

/// Loads the cubin into the current context, finds the record's function and sets its attributes by
/// the record's traits, which bound those of every plan: dynamic shared memory above 48 KiB,
/// clusters above 8 CTAs. Other threads' stream captures stay valid. On failure the module is
/// unloaded again.
Result<ModuleAndFunction> load_module(const driver::Driver& driver, const VerifiedCubin& cubin,
                                      const KernelRecord& record);

}  // namespace cubist::launcher
