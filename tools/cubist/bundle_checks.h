#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "bundle/check_manifests.h"
#include "trust/signature.h"

namespace cubist::tools {

/// What becomes of a bundle's manifests.
enum class Incoming : std::uint8_t {
  kByOwnName,  ///< found by the names they have in the bundle
  kElsewhere,  ///< by those names, but not where a shipped manifest would be found first
  kRenamed,    ///< the user gave another name
};

/// What the user's keys, policy and revocation lists say of a bundle that comes in. Serials are
/// noted when it is installed, and not before.
/// errors  those of trust_of_user()
Result<bundle::Checks> checks_of_user(Incoming kind);

/// Who signed a manifest of a bundle; nothing if nobody did, or no key is trusted. A manifest that
/// is byte for byte one of this program's own package, which its name means, is as trusted as the
/// program.
/// errors  kUntrusted
Result<std::optional<trust::SignedBy>> signer_of(const bundle::IncomingManifest& incoming,
                                                 Incoming kind);

}  // namespace cubist::tools
