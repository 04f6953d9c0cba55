#pragma once

#include <memory>

#include "oci/image.h"
#include "oci/index.h"
#include "oci/session.h"

namespace cubist::oci {

/// What a registry has under a reference: a bundle's manifest, config and index, each held to its
/// digest and to the others. No kernel was read yet.
struct RemoteBundle {
  std::shared_ptr<Session> session;
  Sha256Digest digest;  ///< of the image manifest: pinning it pins everything below
  Image image;
  Config config;
  Index index;
};

/// Three small requests.
///
/// beside  a second client: with one, the last two requests are made at once; may be null
/// errors  kNetwork; kIntegrity: not a bundle, or one whose parts contradict each other
Result<RemoteBundle> open_remote(const Reference& reference, const ConnectOptions& options,
                                 HttpClient& client, HttpClient* beside = nullptr);

}  // namespace cubist::oci
