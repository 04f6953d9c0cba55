#include "bundle_checks.h"

#include <memory>

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

Result<std::optional<trust::SignedBy>> signer_of(const bundle::IncomingManifest& incoming,
                                                 Incoming kind) {
  CUBIST_ASSIGN_OR_RETURN(const trust::Trust* trust, trust_of_user());
  const bool matters = trust->manifest_signatures() != trust::Policy::kAllow;
  return trust->check_manifest(
      {reinterpret_cast<const std::uint8_t*>(incoming.text.data()), incoming.text.size()},
      incoming.origin, incoming.signature,
      matters && kind == Incoming::kByOwnName && is_shipped_text(incoming));
}

Result<bundle::Checks> checks_of_user(Incoming kind) {
  CUBIST_ASSIGN_OR_RETURN(trust::Trust * trust, trust_of_user());
  bundle::Checks checks;
  checks.signature = [kind](const bundle::IncomingManifest& incoming) -> Status {
    CUBIST_ASSIGN_OR_RETURN(const auto signer, signer_of(incoming, kind));
    return {};
  };
  const auto fresh = std::make_shared<trust::Seen>();
  checks.manifest = [=](const bundle::IncomingManifest& incoming,
                        const Manifest& manifest) -> Status {
    const bool is_signed = incoming.signature && trust->checks_signatures();
    if (is_signed && kind != Incoming::kRenamed && manifest.name != incoming.part->name) {
      return fail(StatusCode::kUntrusted,
                  "'{}' is signed as manifest '{}', not '{}': older ones could not be told from "
                  "it. Get a bundle made by 'cubist bundle create', or give it a name with --as",
                  incoming.origin, manifest.name, incoming.part->name);
    }
    CUBIST_ASSIGN_OR_RETURN(const trust::Seen seen,
                            trust->compare_facts({manifest.name, manifest.serial, manifest.expires,
                                                  incoming.part->text.sha256},
                                                 incoming.origin, is_signed));
    fresh->merge(seen);
    return {};
  };
  checks.kernel = [trust](const Sha256Digest& digest, std::string_view name) -> Status {
    const Status allowed = trust->revoked().check(digest, name);
    if (allowed) return {};
    return fail(allowed.error().code(),
                "{}. Nothing of the bundle is used; get one that leaves this kernel out",
                allowed.error().message());
  };
  checks.installed = [=] { trust->note(*fresh); };
  return checks;
}

}  // namespace cubist::tools
