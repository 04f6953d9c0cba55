#pragma once

#include <string>

#include "base/result.h"
#include "bundle/check_manifests.h"

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

/// Writes what is not there yet, first the signature, then the manifest; each appears whole.
/// staging  a folder of the same file system, made if it is missing
Status put_in_place(const ManifestPlace& place, const std::string& folder,
                    const std::string& staging);

}  // namespace cubist::bundle
