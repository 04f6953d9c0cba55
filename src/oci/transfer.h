#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "oci/image.h"
#include "oci/session.h"

namespace cubist::oci {

/// The image manifest that a reference names, as it was sent.
struct FetchedManifest {
  std::string text;
  Sha256Digest digest;
};

/// errors  kNetwork: also "not there"; kIntegrity: other bytes than the digest that was asked for,
///         or that the registry says they have; larger than kMaxImageBytes
Result<FetchedManifest> fetch_manifest(Session& session, HttpClient& client);

/// errors  kNetwork, and kIntegrity: the registry takes it for something else
Status put_manifest(Session& session, HttpClient& client, const std::string& text,
                    const Sha256Digest& digest);

/// A whole small blob. errors  kNetwork; kIntegrity: of another size or digest
Result<std::string> fetch_small_blob(Session& session, HttpClient& client, const Descriptor& blob);

/// Bytes from `have` on into the sink; what comes is not hashed here.
/// errors  kNetwork; kIntegrity: of another size
Status fetch_blob(Session& session, HttpClient& client, const Descriptor& blob, std::uint64_t have,
                  std::shared_ptr<HttpSink> sink);

/// How a blob came to be in the repository.
enum class Sent : std::uint8_t { kPresent, kMounted, kUploaded };

/// Sees to it that the repository has the blob: asks first, then mounts it from another repository
/// if one is given and the registry can, else sends it in one piece, or in pieces where the
/// registry wants it so. An upload that breaks off is begun anew.
///
/// body    the blob's bytes
/// errors  kNetwork, kInterrupted, those of reading; kIntegrity: the bytes are not those that were
///         hashed
Result<Sent> send_blob(Session& session, HttpClient& client, const Descriptor& blob,
                       const HttpBody& body, const std::string& mount_from);

}  // namespace cubist::oci
