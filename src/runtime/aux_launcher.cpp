#include "runtime/aux_launcher.h"

#include "launcher/launch.h"

namespace cubist::runtime {

using launcher::AuxKernel;

namespace {

constexpr std::array<AuxKernel, 5> kAll = {{{AuxKernel::Kind::kReduction, Dtype::kBf16},
                                            {AuxKernel::Kind::kReduction, Dtype::kFp16},
                                            {AuxKernel::Kind::kReduction, Dtype::kE4m3},
                                            {AuxKernel::Kind::kLse, Dtype::kUnknown},
                                            {AuxKernel::Kind::kFuseScales, Dtype::kUnknown}}};

bool same(const AuxKernel& a, const AuxKernel& b) {
  return a.kind == b.kind && (a.kind != AuxKernel::Kind::kReduction || a.dtype_o == b.dtype_o);
}

LaunchPlan plan_of(const Pack& pack, const KernelRecord& record) {
  LaunchPlan plan;
  plan.record = &record;
  plan.family = pack.family;
  plan.revision = pack.revision;
  plan.param_layout = pack.param_layout;
  plan.block = {record.traits.threads, 1, 1};
  return plan;
}

}  // namespace

/// One kernel: its records as plans, of which a launch takes the first that the device runs.
struct AuxLauncher::Entry {
  AuxKernel kernel;
  Selection selection;
  launcher::ReadyMemo memo;
};

AuxLauncher::AuxLauncher(const std::vector<Manifest>& manifests) {
  for (const AuxKernel& kernel : kAll) {
    auto entry = std::make_unique<Entry>();
    entry->kernel = kernel;
    Selection& found = entry->selection;
    for (const Manifest& manifest : manifests) {
      for (const Pack& pack : manifest.packs) {
        if (pack.family != KernelFamily::kCubistAux) continue;
        for (const KernelRecord& record : pack.kernels) {
          if (found.num_plans == Selection::kMaxPlans) break;
          if (!launcher::is_aux_kernel(record, kernel)) continue;
          found.plans[found.num_plans++] = plan_of(pack, record);
        }
      }
    }
    if (found.num_plans > 0) entries_.push_back(std::move(entry));
  }
}

AuxLauncher::~AuxLauncher() = default;

Result<AuxLauncher::Entry*> AuxLauncher::find(const AuxKernel& kernel) const {
  for (const auto& entry : entries_) {
    if (same(entry->kernel, kernel)) return entry.get();
  }
  return fail(
      StatusCode::kNotFound,
      "no manifest has the kernel {}; open the shipped manifest cubist-aux beside the others",
      launcher::describe(kernel));
}

std::vector<const KernelRecord*> AuxLauncher::records(const AuxKernel& kernel) const {
  std::vector<const KernelRecord*> found;
  for (const auto& entry : entries_) {
    if (!same(entry->kernel, kernel)) continue;
    for (std::uint32_t i = 0; i < entry->selection.num_plans; ++i) {
      found.push_back(entry->selection.plans[i].record);
    }
  }
  return found;
}

Result<launcher::ReadyPlan> AuxLauncher::prepare(launcher::Launcher& launcher,
                                                 const AuxKernel& kernel,
                                                 const launcher::ContextInfo& context,
                                                 const cuda::CUstream* stream) {
  CUBIST_ASSIGN_OR_RETURN(Entry * entry, find(kernel));
  return launcher.ready(entry->selection, entry->memo, context, stream);
}

Status AuxLauncher::launch(const driver::Driver& driver, const launcher::ReadyPlan& ready,
                           const AuxGeometry& geometry, const void* params, cuda::CUstream stream) {
  LaunchPlan plan = *ready.plan;
  plan.grid = geometry.grid;
  plan.block = {geometry.block, 1, 1};
  plan.pdl = geometry.pdl;
  return launcher::launch_kernel(driver, ready.kernel->function, plan, params, stream);
}

}  // namespace cubist::runtime
