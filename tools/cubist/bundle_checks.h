#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "bundle/check_manifests.h"
#include "trust/signature.h"

namespace cubist::tools {

/// What the user's keys, policy and revocation lists say of a bundle that comes in.
/// errors  those of trust_of_user()
Result<bundle::Checks> checks_of_user();

/// Who signed a manifest of a bundle; nothing if nobody did, or no key is trusted. A manifest that
/// is byte for byte one of this program's own package is as trusted as the program.
/// errors  kUntrusted
Result<std::optional<trust::SignedBy>> signer_of(const bundle::IncomingManifest& incoming);

}  // namespace cubist::tools
