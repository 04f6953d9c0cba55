#include "codec/device_presets.h"

#include <array>
#include <string>

#include "codec/problem_fields.h"

namespace cubist {
namespace {

// Shared memory a block may opt in to, bytes, by compute capability. Source: CUDA C++ Programming
// Guide.
constexpr std::uint32_t kSmem80 = 166912;
constexpr std::uint32_t kSmem89 = 101376;
constexpr std::uint32_t kSmem90 = 232448;
constexpr std::uint32_t kSmem120 = 101376;

// SM counts. Source: device dumps in openxla/xla's target_config/specs (h100_sxm, h100_pcie, b200,
// gb200, gb300, a100_sxm_80, rtx6000pro); h200: measured; others: deviceQuery dumps.
constexpr auto kPresets = std::to_array<DevicePreset>({
    {"a100", "A100 SXM", 80, 108, kSmem80},
    {"b200", "B200", 100, 148, kSmem90},
    {"b300", "B300 (148 SMs by users' measurement; some tables say otherwise)", 103, 148, kSmem90},
    {"gb10", "GB10, DGX Spark", 121, 48, kSmem120},
    {"gb200", "GB200", 100, 152, kSmem90},
    {"gb300", "GB300", 103, 152, kSmem90},
    {"gh200", "GH200 96 GB", 90, 132, kSmem90},
    {"h100", "H100 SXM", 90, 132, kSmem90},
    {"h100-pcie", "H100 PCIe", 90, 114, kSmem90},
    {"h200", "H200 SXM", 90, 132, kSmem90},
    {"l40s", "L40S", 89, 142, kSmem89},
    {"rtx-5090", "GeForce RTX 5090", 120, 170, kSmem120},
    {"rtx-pro-6000", "RTX PRO 6000 Blackwell", 120, 188, kSmem120},
});

}  // namespace

std::span<const DevicePreset> device_presets() { return kPresets; }

std::optional<DeviceProfile> find_device_preset(std::string_view name) {
  for (const DevicePreset& preset : kPresets) {
    if (preset.name != name) continue;
    DeviceProfile device;
    device.name = std::string(preset.name);
    device.sm = preset.sm;
    device.num_sms = preset.num_sms;
    device.max_smem_optin = preset.max_smem_optin;
    complete_device(device);
    return device;
  }
  return std::nullopt;
}

}  // namespace cubist
