#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "manifest/manifest.h"
#include "runtime/trusted_manifest.h"

namespace cubist::tools {

/// The file that a manifest's name means.
struct NamedManifest {
  std::string name;
  std::string path;
  std::optional<Sha256Digest> pinned;  ///< what the file must hash to
  std::string project;                 ///< the file that pins it
  bool pinned_by_path = false;         ///< the pin says which file; otherwise the name does
};

/// A file (it has a "/" or ends in ".json"), else the project's pin of that name, else NAME.json in
/// the folders of manifests.
///
/// errors  kNotFound; kInvalidArgument: the project's file is broken
Result<NamedManifest> find_manifest(const std::string& name);

/// A manifest that was found, parsed, with who vouches for it.
/// errors  kIntegrity: not the manifest that is pinned; kManifestInvalid; kUntrusted and the rest
/// of
///         trust_of_user() and runtime::parse_trusted_manifest()
Result<runtime::TrustedManifest> open_trusted_manifest(const NamedManifest& named);

/// What --manifest means, parsed. errors  those of find_manifest() and open_trusted_manifest()
Result<Manifest> open_manifest(const std::string& name);

/// The path of its file, which is the pinned one; for what opens manifests itself.
Result<std::string> manifest_path(const std::string& name);

/// Every name a manifest is found by: the project's pins and what lies in the folders, sorted.
Result<std::vector<std::string>> manifest_names();

/// errors  kIntegrity: `text`, read from it, is not the manifest that is pinned
Status check_pin(const NamedManifest& manifest, std::string_view text);

}  // namespace cubist::tools
