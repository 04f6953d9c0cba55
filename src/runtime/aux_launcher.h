#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "launcher/aux_kernels.h"
#include "launcher/launcher.h"
#include "manifest/manifest.h"

namespace cubist::runtime {

/// How one auxiliary kernel is launched.
struct AuxGeometry {
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::uint32_t block = 1;
  bool pdl = false;
};

/// The kernels of manifests/cubist-aux.json that some manifests have. Safe from any thread;
/// a warm launch allocates nothing.
class AuxLauncher {
 public:
  /// The records stay where they are as long as this lives.
  explicit AuxLauncher(const std::vector<Manifest>& manifests);
  ~AuxLauncher();

  /// The records of one kernel, one an architecture; none if no manifest has it.
  std::vector<const KernelRecord*> records(const launcher::AuxKernel& kernel) const;

  /// Loads the kernel into the context, which is the current one; a second time costs a look-up.
  ///
  /// stream  of the launch that will follow, which must not be captured then; null: there is none
  /// errors  kNotFound: no manifest of the runtime has the kernel; of Launcher::ready
  Result<launcher::ReadyPlan> prepare(launcher::Launcher& launcher,
                                      const launcher::AuxKernel& kernel,
                                      const launcher::ContextInfo& context,
                                      const cuda::CUstream* stream);

  /// Queues one launch of what was prepared. One driver call.
  ///
  /// params  with the bytes that the kernel declares
  /// errors  of launch_kernel
  static Status launch(const driver::Driver& driver, const launcher::ReadyPlan& ready,
                       const AuxGeometry& geometry, const void* params, cuda::CUstream stream);

 private:
  struct Entry;
  Result<Entry*> find(const launcher::AuxKernel& kernel) const;

  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace cubist::runtime
