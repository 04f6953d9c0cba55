#pragma once

#include <optional>
#include <string_view>

#include "base/sha256.h"
#include "model/enums.h"

namespace cubist {

/// What is known of a published FMHA release.
struct Generation {
  HeuristicRevision revision;
  ParamLayout param_layout;
};

/// Recognises a release by the digest of its metadata header, or else by its artifact: the 40
/// digits that name it in a wheel's paths. Empty optional for one this program has not seen.
std::optional<Generation> find_generation(const Sha256Digest& header, std::string_view artifact);

}  // namespace cubist
