#include "selector/occupancy.h"

#include <algorithm>

namespace cubist::selector {

std::int32_t active_clusters(const Request& request, const DeviceProfile& device,
                             const OccupancyQuery& query, const LaunchPlan& plan) {
  if (request.max_active_clusters >= 0) return request.max_active_clusters;
  const std::uint32_t size = plan.cluster[0];
  if (size < device.max_active_clusters.size() && device.max_active_clusters[size] >= 0) {
    return device.max_active_clusters[size];
  }
  return query.ask != nullptr ? query.ask(query.user_data, plan) : -1;
}

std::array<std::int32_t, kModelledGpcs> modelled_gpcs(std::int32_t num_sms) {
  constexpr auto kGpcs = static_cast<std::int32_t>(kModelledGpcs);
  std::array<std::int32_t, kModelledGpcs> sizes{};
  const std::int32_t tpcs = num_sms / 2;
  for (std::int32_t i = 0; i < kGpcs; ++i) {
    sizes[static_cast<std::size_t>(i)] = 2 * (tpcs / kGpcs + (i < tpcs % kGpcs ? 1 : 0));
  }
  sizes[kModelledGpcs - 1] += num_sms % 2;
  return sizes;
}

std::array<std::int32_t, 17> clusters_from_gpcs(std::span<const std::int32_t> gpc_sms) {
  std::array<std::int32_t, 17> answers{};
  answers[0] = answers[1] = -1;
  for (std::int32_t size = 2; size < static_cast<std::int32_t>(answers.size()); ++size) {
    std::int32_t& answer = answers[static_cast<std::size_t>(size)];
    for (const std::int32_t sms : gpc_sms) answer += std::max(sms, 0) / size;
  }
  return answers;
}

}  // namespace cubist::selector
