#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "bundle/check_manifests.h"
#include "registry/staged_file.h"

namespace cubist::bundle {

/// Where a manifest goes, and what lies there.
struct ManifestPlace {
  std::string name;
  std::string path;
  IncomingManifest incoming;
  bool same_text = false;       ///< these bytes lie there already
  bool same_signature = false;  ///< and so does the signature, or there is none and none to come
};

/// Looks whether a manifest can go into `folder` as NAME.json; writes nothing.
/// errors  kInvalidArgument: another one has that name, and `replace` is false; kIo: the folder is
///         a link, or what is there cannot be read
Result<ManifestPlace> find_place(const std::string& folder, std::string name,
                                 IncomingManifest incoming, bool replace);

/// What is not there yet, written and durable, without its name. Gone with the object.
struct StagedManifest {
  std::optional<StagedFile> text;
  std::optional<StagedFile> signature;
};

/// folder, staging  where the manifest goes and where it is until then, on one file system; made if
///                  missing
Result<StagedManifest> stage_manifest(const ManifestPlace& place, const std::string& folder,
                                      const std::string& staging);

/// Gives what was staged its names, first the signature, then the manifest; each appears whole.
Status put_in_place(StagedManifest staged, const ManifestPlace& place, const std::string& folder);

}  // namespace cubist::bundle
