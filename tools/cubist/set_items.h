#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "manifest/manifest.h"
#include "registry/fetch.h"
#include "workingset/set_file.h"

namespace cubist::tools {

/// The manifest's records of the kernels that a set file (docs/working-sets.md) lists, each once.
/// A set over several manifests gives those of this one.
///
/// set_path  names the file in errors
/// returns   pointers into `manifest`
/// errors    kNotFound: a kernel that the manifest lacks although it should have it, or none left;
///           kIntegrity: another size than the manifest's
Result<std::vector<FetchItem>> find_set_items(const workingset::SetFile& set,
                                              const std::string& set_path,
                                              const Manifest& manifest);

/// The manifest that --manifest names, or else the one that the set is from.
///
/// name    empty: the set's own
/// errors  those of open_manifest(); kInvalidArgument: the set names no manifest, or several
Result<Manifest> open_manifest_of_set(const std::string& name, const workingset::SetFile& set,
                                      const std::string& set_path);

}  // namespace cubist::tools
