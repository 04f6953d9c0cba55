#include "bundle/check_manifests.h"

#include <unordered_map>

#include "bundle/layout.h"
#include "manifest/parse.h"

namespace cubist::bundle {
namespace {

Result<IncomingManifest> read_incoming(const Bundle& bundle, const ManifestPart& part) {
  IncomingManifest incoming;
  incoming.part = &part;
  incoming.origin = fmt::format("{}:{}", bundle.file_name(), part.text.path);
  CUBIST_ASSIGN_OR_RETURN(incoming.text, bundle.read_part(part.text));
  if (part.signature) {
    CUBIST_ASSIGN_OR_RETURN(incoming.signature, bundle.read_part(*part.signature));
  }
  return incoming;
}

/// What the manifests say of the kernels they name.
struct Known {
  std::string name;
  std::uint64_t size_bytes = 0;
};
using KnownKernels = std::unordered_map<Sha256Digest, Known>;

Status add_kernels_of(const IncomingManifest& incoming, const Checks& checks, KnownKernels& known) {
  CUBIST_ASSIGN_OR_RETURN(const Manifest manifest, parse_manifest(incoming.text, incoming.origin));
  if (checks.manifest) CUBIST_RETURN_IF_ERROR(checks.manifest(incoming, manifest));
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      known.insert({kernel.sha256, {std::string(kernel.name), kernel.size_bytes}});
    }
  }
  return {};
}

Status check_kernel(const Bundle& bundle, const Kernel& kernel, const KnownKernels& known,
                    const Checks& checks) {
  const auto found = known.find(kernel.sha256);
  if (found == known.end()) {
    return fail(StatusCode::kIntegrity, "'{}': kernel '{}' is in none of the bundle's manifests",
                bundle.file_name(), kernel_member_name(kernel.sha256));
  }
  if (found->second.size_bytes != kernel.size_bytes) {
    return fail(StatusCode::kIntegrity,
                "'{}': kernel '{}' has {} bytes by bundle.json and {} by the manifest",
                bundle.file_name(), kernel_member_name(kernel.sha256), kernel.size_bytes,
                found->second.size_bytes);
  }
  return checks.kernel ? checks.kernel(kernel.sha256, found->second.name) : Status();
}

}  // namespace

Result<std::vector<IncomingManifest>> check_manifests(const Bundle& bundle, const Checks& checks) {
  KnownKernels known;
  std::vector<IncomingManifest> manifests;
  for (const ManifestPart& part : bundle.description().manifests) {
    CUBIST_ASSIGN_OR_RETURN(IncomingManifest incoming, read_incoming(bundle, part));
    if (checks.signature) CUBIST_RETURN_IF_ERROR(checks.signature(incoming));
    CUBIST_RETURN_IF_ERROR(add_kernels_of(incoming, checks, known));
    manifests.push_back(std::move(incoming));
  }
  for (const Kernel& kernel : bundle.description().kernels) {
    CUBIST_RETURN_IF_ERROR(check_kernel(bundle, kernel, known, checks));
  }
  return manifests;
}

}  // namespace cubist::bundle
