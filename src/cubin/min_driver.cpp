#include "cubin/min_driver.h"

#include "model/cuda_version.h"

namespace cubist {

std::optional<std::int32_t> min_driver_of(const CubinFile& cubin) {
  constexpr std::int32_t kFirstWithRule = 11000;
  const std::optional<std::int32_t> tools = parse_cuda_version(cubin.tool_release);
  if (!tools || *tools < kFirstWithRule) return std::nullopt;
  return *tools / 1000 * 1000;
}

}  // namespace cubist
