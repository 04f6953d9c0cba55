#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/device_profile.h"
#include "model/launch_plan.h"
#include "selector/request.h"

namespace cubist::selector {

/// How many clusters of a plan fit on the device at once, asked of whoever knows (the driver's
/// cuOccupancyMaxActiveClusters). `ask` gives -1 for "unknown". It is called only for plans with a
/// precondition that neither the problem nor the device profile answers.
struct OccupancyQuery {
  std::int32_t (*ask)(void* user_data, const LaunchPlan& plan) = nullptr;
  void* user_data = nullptr;
};

/// The answer of the problem, else of the profile, else of the query; -1: unknown.
std::int32_t active_clusters(const Request& request, const DeviceProfile& device,
                             const OccupancyQuery& query, const LaunchPlan& plan);

inline constexpr std::size_t kModelledGpcs = 8;

/// SMs of each of the 8 GPCs (graphics processing clusters) of a device with so many SMs: whole
/// TPCs of two SMs, spread evenly. A model: yields differ from chip to chip.
std::array<std::int32_t, kModelledGpcs> modelled_gpcs(std::int32_t num_sms);

/// Clusters of each size that fit at once when a cluster stays within a GPC and a CTA fills an SM;
/// index = cluster size, 0 and 1 stay -1. For DeviceProfile::max_active_clusters.
std::array<std::int32_t, 17> clusters_from_gpcs(std::span<const std::int32_t> gpc_sms);

}  // namespace cubist::selector
