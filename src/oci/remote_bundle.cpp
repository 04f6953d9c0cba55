#include "oci/remote_bundle.h"

#include "oci/transfer.h"

namespace cubist::oci {

Result<RemoteBundle> open_remote(const Reference& reference, const ConnectOptions& options,
                                 HttpClient& client) {
  RemoteBundle remote;
  CUBIST_ASSIGN_OR_RETURN(remote.session, Session::open(reference, Access::kPull, options));
  CUBIST_ASSIGN_OR_RETURN(const FetchedManifest manifest, fetch_manifest(*remote.session, client));
  remote.digest = manifest.digest;
  const std::string name = reference.text();
  CUBIST_ASSIGN_OR_RETURN(remote.image, parse_image(manifest.text, name));
  CUBIST_ASSIGN_OR_RETURN(const std::string config,
                          fetch_small_blob(*remote.session, client, remote.image.config));
  CUBIST_ASSIGN_OR_RETURN(remote.config, parse_config(config, remote.image, name + ": config"));
  CUBIST_ASSIGN_OR_RETURN(const std::string index,
                          fetch_small_blob(*remote.session, client, remote.image.index));
  CUBIST_ASSIGN_OR_RETURN(remote.index, parse_index(index, remote.image, name + ": index"));
  if (remote.index.kernels.size() != remote.config.num_kernels) {
    return fail(StatusCode::kIntegrity, "{}: the config counts {} kernels, the index {}", name,
                remote.config.num_kernels, remote.index.kernels.size());
  }
  return remote;
}

}  // namespace cubist::oci
