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

/// The manifest a set is from where nobody names one.
/// errors  kInvalidArgument: the set names none, or several
Result<std::string> manifest_of_set(const workingset::SetFile& set, const std::string& set_path);

}  // namespace cubist::tools
