#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "manifest/manifest.h"

namespace cubist {

/// Which kernels are wanted. An empty list asks nothing; within a list one match is enough, and
/// every list must match. What a kernel beside attention (family cubist_aux) computes has no types,
/// head dimension or phase of its own: those lists do not exclude it.
struct KernelFilter {
  /// "sm_100f" is that architecture; "sm_100" or "100" everything that runs on such a device.
  std::vector<std::string> archs;
  std::vector<Dtype> dtypes_q;
  std::vector<Dtype> dtypes_kv;  ///< K's or V's
  std::vector<Dtype> dtypes_o;
  struct HeadDim {
    std::uint32_t qk = 0;
    std::optional<std::uint32_t> vo;
  };
  std::vector<HeadDim> head_dims;
  std::vector<Phase> phases;
  std::vector<std::string> names;  ///< patterns: "*" is any text, "?" any character
  std::vector<Sha256Digest> digests;

  bool asks_nothing() const {
    return archs.empty() && dtypes_q.empty() && dtypes_kv.empty() && dtypes_o.empty() &&
           head_dims.empty() && phases.empty() && names.empty() && digests.empty();
  }
};

/// "128", or "576/512" for Q and K, V and O.
/// errors  kInvalidArgument
Result<KernelFilter::HeadDim> parse_head_dim(std::string_view text);

/// The phase an attention kernel serves: decode (generation kernels), ragged (context kernels with
/// separate Q, K and V) or context.
Phase phase_of(const KernelTraits& traits);

bool matches(const KernelFilter& filter, KernelFamily family, const KernelRecord& record);

/// Whether `text` has the form of `pattern`. Time grows with the product of the lengths at most.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// The manifest with those kernels alone, in the same order; packs left without one are left out.
Manifest subset_of(const Manifest& manifest, const KernelFilter& filter);

}  // namespace cubist
