#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/description.h"

namespace cubist::bundle {

// Names of a bundle's members, in the order they lie in the file (docs/bundles.md).

inline constexpr std::string_view kDescriptionName = "bundle.json";
inline constexpr std::string_view kLicenseName = "LICENSE";
inline constexpr std::string_view kNoticeName = "NOTICE";

// A member larger than this is refused before it is read. Unit: bytes.
inline constexpr std::uint64_t kMaxDescriptionBytes = 16ULL << 20;
inline constexpr std::uint64_t kMaxSignatureBytes = 64ULL << 10;
inline constexpr std::uint64_t kMaxTextBytes = 16ULL << 20;  ///< LICENSE and NOTICE

/// manifests/NAME.json
std::string manifest_member_name(std::string_view manifest);
/// manifests/NAME.json.minisig
std::string signature_member_name(std::string_view manifest);
/// sha256/ab/<64 hex digits>.cubin
std::string kernel_member_name(const Sha256Digest& digest);

/// Whether a manifest in a bundle may be called so: letters, digits and "_.-$+", the first none of
/// ".-+", at most 200 bytes.
bool is_manifest_name(std::string_view name);

struct ExpectedMember {
  std::string name;
  std::uint64_t size_bytes = 0;
};

/// Every member of a bundle with this description, in order. The first is bundle.json itself, whose
/// size is given.
std::vector<ExpectedMember> expected_members(const Description& description,
                                             std::uint64_t description_bytes);

}  // namespace cubist::bundle
