#include "select_device.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "codec/device_presets.h"
#include "selector/select.h"

namespace cubist::tools {
namespace {

bool any_pack_fits(const selector::KernelTable& table, std::uint32_t sm) {
  return std::any_of(
      table.packs().begin(), table.packs().end(),
      [sm](const selector::PackTable& pack) { return selector::pack_fits_device(pack, sm); });
}

/// "sm_100a, sm_100f"
std::string architectures(const selector::KernelTable& table) {
  std::vector<SmArch> archs;
  for (const selector::PackTable& pack : table.packs()) {
    for (const KernelRecord& record : pack.pack().kernels) {
      const SmArch arch = record.traits.arch;
      if (std::find(archs.begin(), archs.end(), arch) == archs.end()) archs.push_back(arch);
    }
  }
  std::sort(archs.begin(), archs.end());
  std::string text;
  for (const SmArch arch : archs) text += (text.empty() ? "" : ", ") + to_string(arch);
  return text;
}

std::string presets_that_fit(const selector::KernelTable& table) {
  std::string text;
  for (const DevicePreset& preset : device_presets()) {
    if (!any_pack_fits(table, preset.sm)) continue;
    text += text.empty() ? "" : ", ";
    text += preset.name;
  }
  return text;
}

bool is_default(const DeviceProfile& device, const ProblemFlags& flags) {
  return !flags.names_device() && !flags.changes_device() &&
         device.name == ProblemFlags::default_device();
}

}  // namespace

void print_device(const DeviceProfile& device, const ProblemFlags& flags) {
  const std::string name = flags.changes_device() || device.name.empty() ? "" : device.name + ", ";
  std::puts(fmt::format("device    {}sm {}, {} SMs{}", name, device.sm, device.num_sms,
                        is_default(device, flags) ? " (the default: --device names another)" : "")
                .c_str());
}

Error explain_miss(const selector::KernelTable& table, const DeviceProfile& device,
                   const ProblemFlags& flags, const Error& refusal) {
  if (refusal.code() != StatusCode::kUnsupported || any_pack_fits(table, device.sm)) {
    return refusal;
  }
  std::string text = refusal.message();
  if (is_default(device, flags)) {
    text += fmt::format(" (--device defaults to {})", ProblemFlags::default_device());
  }
  text += "; the manifest's kernels are for " + architectures(table);
  const std::string others = presets_that_fit(table);
  if (!others.empty()) text += "; try --device " + others;
  return Error(refusal.code(), std::move(text));
}

}  // namespace cubist::tools
