#include "oci/remote_bundle.h"

#include <array>

#include "oci/transfer.h"
#include "oci/work.h"

namespace cubist::oci {

Result<RemoteBundle> open_remote(const Reference& reference, const ConnectOptions& options,
                                 HttpClient& client, HttpClient* beside) {
  RemoteBundle remote;
  CUBIST_ASSIGN_OR_RETURN(remote.session, Session::open(reference, Access::kPull, options));
  CUBIST_ASSIGN_OR_RETURN(const FetchedManifest manifest, fetch_manifest(*remote.session, client));
  remote.digest = manifest.digest;
  const std::string name = reference.text();
  CUBIST_ASSIGN_OR_RETURN(remote.image, parse_image(manifest.text, name));
  const std::array<const Descriptor*, 2> blobs = {&remote.image.config, &remote.image.index};
  std::array<std::string, 2> texts;
  const auto bring = [&](std::size_t i, unsigned thread) -> Status {
    HttpClient& own = thread == 0 ? client : *beside;
    CUBIST_ASSIGN_OR_RETURN(texts[i], fetch_small_blob(*remote.session, own, *blobs[i]));
    return {};
  };
  CUBIST_RETURN_IF_ERROR(in_parallel(blobs.size(), beside != nullptr ? 2 : 1, bring));
  CUBIST_ASSIGN_OR_RETURN(remote.config, parse_config(texts[0], remote.image, name + ": config"));
  CUBIST_ASSIGN_OR_RETURN(remote.index, parse_index(texts[1], remote.image, name + ": index"));
  if (remote.index.kernels.size() != remote.config.num_kernels) {
    return fail(StatusCode::kIntegrity, "{}: the config counts {} kernels, the index {}", name,
                remote.config.num_kernels, remote.index.kernels.size());
  }
  return remote;
}

}  // namespace cubist::oci
