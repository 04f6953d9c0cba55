#include "bundle/check_manifests.h"

#include <optional>
#include <unordered_map>

#include "base/threads.h"
#include "bundle/layout.h"
#include "manifest/parse.h"

namespace cubist::bundle {
namespace {

Result<IncomingManifest> read_incoming(const Bundle& bundle, const ManifestPart& part) {
  IncomingManifest incoming;
  incoming.part = &part;
  incoming.origin = fmt::format("{}:{}", bundle.file_name(), part.text.path);
  CUBIST_ASSIGN_OR_RETURN(incoming.text, bundle.unpack_part(part.text));
  if (part.signature) {
    CUBIST_ASSIGN_OR_RETURN(incoming.signature, bundle.read_part(*part.signature));
  }
  return incoming;
}

/// What the first manifest that names a kernel says of it.
struct Known {
  std::string name;
  std::uint64_t size_bytes = 0;
};
/// The bundle's kernels: a manifest may name a thousand times as many.
using KnownKernels = std::unordered_map<Sha256Digest, std::optional<Known>>;

/// The manifest, held to bundle.json and to its signature. Its digest is taken while it is read:
/// nobody sees what was read of a text that is another.
Result<Manifest> read_manifest(const Bundle& bundle, const IncomingManifest& incoming,
                               const Checks& checks) {
  const Part& part = incoming.part->text;
  if (checks.signature) {
    if (Status signature = checks.signature(incoming); !signature) {
      CUBIST_RETURN_IF_ERROR(bundle.check_part(part, incoming.text));
      return forward_error(signature);
    }
  }
  Status digest;
  Result<Manifest> manifest;
  do_both([&] { manifest = parse_manifest(incoming.text, incoming.origin); },
          [&] { digest = bundle.check_part(part, incoming.text); });
  CUBIST_RETURN_IF_ERROR(digest);
  if (manifest && checks.manifest) CUBIST_RETURN_IF_ERROR(checks.manifest(incoming, *manifest));
  return manifest;
}

void look_up_in(const Manifest& manifest, KnownKernels& kernels) {
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      const auto wanted = kernels.find(kernel.sha256);
      if (wanted == kernels.end() || wanted->second) continue;
      wanted->second = Known{std::string(kernel.name), kernel.size_bytes};
    }
  }
}

Status check_kernel(const Bundle& bundle, const Kernel& kernel, const std::optional<Known>& known,
                    const Checks& checks) {
  if (!known) {
    return fail(StatusCode::kIntegrity, "'{}': kernel '{}' is in none of the bundle's manifests",
                bundle.file_name(), kernel_member_name(kernel.sha256));
  }
  if (known->size_bytes != kernel.size_bytes) {
    return fail(StatusCode::kIntegrity,
                "'{}': kernel '{}' has {} bytes by bundle.json and {} by the manifest",
                bundle.file_name(), kernel_member_name(kernel.sha256), kernel.size_bytes,
                known->size_bytes);
  }
  return checks.kernel ? checks.kernel(kernel.sha256, known->name) : Status();
}

}  // namespace

Result<std::vector<IncomingManifest>> check_manifests(const Bundle& bundle, const Checks& checks) {
  KnownKernels kernels;
  for (const Kernel& kernel : bundle.description().kernels) kernels[kernel.sha256];
  std::vector<IncomingManifest> manifests;
  for (const ManifestPart& part : bundle.description().manifests) {
    CUBIST_ASSIGN_OR_RETURN(IncomingManifest incoming, read_incoming(bundle, part));
    CUBIST_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(bundle, incoming, checks));
    look_up_in(manifest, kernels);
    manifests.push_back(std::move(incoming));
  }
  for (const Kernel& kernel : bundle.description().kernels) {
    CUBIST_RETURN_IF_ERROR(check_kernel(bundle, kernel, kernels[kernel.sha256], checks));
  }
  return manifests;
}

}  // namespace cubist::bundle
