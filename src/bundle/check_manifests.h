#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bundle/bundle.h"
#include "manifest/manifest.h"

namespace cubist::bundle {

/// A manifest out of a bundle: its bytes are those that bundle.json names.
struct IncomingManifest {
  const ManifestPart* part = nullptr;  ///< of the bundle's description
  std::string text;
  std::optional<std::string> signature;
  std::string origin;  ///< "FILE:manifests/NAME.json", for messages
};

/// What whoever takes a bundle in asks about it. Each may be empty; an error refuses the bundle.
struct Checks {
  /// Whether a manifest is trusted; asked before anything in it is believed.
  std::function<Status(const IncomingManifest&)> signature;
  /// Whether what it says of itself is acceptable; asked after it was read.
  std::function<Status(const IncomingManifest&, const Manifest&)> manifest;
  /// Whether a kernel may come in at all, such as one that was revoked.
  std::function<Status(const Sha256Digest&, std::string_view name)> kernel;
  /// Told once every manifest is in its place, where the bundle is installed.
  std::function<void()> installed;
};

/// Reads and checks everything but the kernels' bytes: each manifest against its digest and the
/// checks, each kernel that it is one that a manifest names, with this size.
///
/// errors  kIntegrity: names the member; kManifestInvalid; those of the checks
Result<std::vector<IncomingManifest>> check_manifests(const Bundle& bundle, const Checks& checks);

}  // namespace cubist::bundle
