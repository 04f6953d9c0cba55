#pragma once

#include <array>
#include <cstdint>

#include "selector/geometry.h"
#include "selector/kernel_table.h"

namespace cubist::selector {

/// A kernel that serves, with what it is ranked by.
struct RankedKernel {
  const KernelRecord* record = nullptr;
  CtaGrid grid;
  std::int32_t relaxations = 0;  ///< optional wishes it does not fulfil (skip softmax)
  float time = 0;                ///< modelled
};

/// The best kernels of a pack that serve a problem, best first: fewest relaxations, lowest modelled
/// time, larger tile_q, made for the device before family, name. Kernels that reduce through
/// cluster memory may turn out not to fit the device; they are followed by the next ones, and the
/// first that has no such precondition ends the list.
struct RankedKernels {
  static constexpr std::uint32_t kMax = 4;
  std::array<RankedKernel, kMax> kernels;
  std::uint32_t count = 0;
};

/// What the caller knows of the device's clusters: a kernel for which it returns false is passed
/// over.
using AcceptKernel = bool (*)(const void* context, const KernelRecord& record, const CtaGrid& grid);

/// Searches the pack's group of the request. Pure, no allocation.
RankedKernels rank_serving_kernels(const PackTable& table, const Request& request,
                                   AcceptKernel accepts, const void* context);

/// The first four of the whole order, clusters or not.
RankedKernels rank_all_serving_kernels(const PackTable& table, const Request& request);

/// One kernel with its grid and modelled time; false if it does not serve.
bool rank_kernel(const PackTable& table, const Request& request, const KernelRecord& record,
                 RankedKernel& out);

/// Whether `a` comes before `b` in that order.
bool ranks_before(const RankedKernel& a, const RankedKernel& b);

}  // namespace cubist::selector
