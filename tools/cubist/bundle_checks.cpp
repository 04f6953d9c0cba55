#include "bundle_checks.h"

#include "base/file.h"
#include "manifest/parse.h"
#include "runtime/manifest_path.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

bool is_shipped_text(const bundle::IncomingManifest& incoming) {
  const auto path = runtime::find_manifest(incoming.part->name);
  if (!path || !runtime::is_shipped(*path)) return false;
  const auto text = read_text_file(*path, kMaxManifestBytes);
  return text && *text == incoming.text;
}

}  // namespace

Result<std::optional<trust::SignedBy>> signer_of(const bundle::IncomingManifest& incoming) {
  CUBIST_ASSIGN_OR_RETURN(const trust::Trust* trust, trust_of_user());
  return trust->check_manifest(
      {reinterpret_cast<const std::uint8_t*>(incoming.text.data()), incoming.text.size()},
      incoming.origin, incoming.signature, is_shipped_text(incoming));
}

Result<bundle::Checks> checks_of_user() {
  CUBIST_ASSIGN_OR_RETURN(trust::Trust * trust, trust_of_user());
  bundle::Checks checks;
  checks.signature = [](const bundle::IncomingManifest& incoming) -> Status {
    CUBIST_ASSIGN_OR_RETURN(const auto signer, signer_of(incoming));
    return {};
  };
  checks.manifest = [trust](const bundle::IncomingManifest& incoming, const Manifest& manifest) {
    const bool is_signed = incoming.signature && trust->checks_signatures();
    return trust->check_facts({manifest.name, manifest.serial, manifest.expires}, incoming.origin,
                              is_signed);
  };
  checks.kernel = [trust](const Sha256Digest& digest, std::string_view name) {
    return trust->revoked().check(digest, name);
  };
  return checks;
}

}  // namespace cubist::tools
