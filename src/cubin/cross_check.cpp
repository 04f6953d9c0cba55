#include "cubin/cross_check.h"

#include <fmt/format.h>

namespace cubist {
namespace {

/// A file that does not tell family from plain agrees with both, but never with a specific record.
bool same_arch(const CubinFile& cubin, SmArch wanted) {
  if (cubin.arch_is_exact) return cubin.arch == wanted;
  return cubin.arch.sm == wanted.sm && wanted.kind != SmArch::Kind::kSpecific;
}

std::string kernel_names(const CubinFile& cubin) {
  std::string names;
  for (const CubinEntry* kernel : cubin.kernels()) {
    if (!names.empty()) names += ", ";
    names += kernel->name;
  }
  return names;
}

}  // namespace

std::string to_string(const Disagreement& disagreement) {
  return fmt::format("{}: the manifest says {}, the cubin {}", disagreement.field,
                     disagreement.manifest, disagreement.cubin);
}

std::vector<Disagreement> cross_check(const CubinFile& cubin, const KernelRecord& record,
                                      ParamLayout layout) {
  std::vector<Disagreement> found;
  const auto compare = [&](const char* field, auto manifest, auto file) {
    if (manifest == file) return;
    found.push_back({field, fmt::to_string(manifest), fmt::to_string(file)});
  };
  const KernelTraits& traits = record.traits;
  if (!same_arch(cubin, traits.arch)) {
    found.push_back({"arch", to_string(traits.arch), arch_text(cubin)});
  }
  const CubinEntry* entry = cubin.find(record.name);
  if (entry == nullptr) {
    found.push_back({"name", record.name, kernel_names(cubin)});
    return found;
  }
  if (entry->max_threads) compare("threads", std::uint32_t{traits.threads}, entry->threads());
  if (entry->dynamic_smem) compare("smem", traits.smem, *entry->dynamic_smem);
  if (entry->two_cta_mma) compare("two_cta_mma", traits.two_cta_mma, *entry->two_cta_mma);
  if (layout != ParamLayout::kNone) {
    compare("param_bytes", param_layout_bytes(layout), entry->param_bytes);
  }
  return found;
}

}  // namespace cubist
