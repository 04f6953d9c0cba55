#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist::runtime {

/// Folders that shipped manifests are looked for in, in order: those of CUBIST_MANIFESTS (separated
/// by ":"), share/cubist/manifests beside the folder that this library or program lies in, in a
/// build tree the manifests/ of the source tree above it, and last manifests/ in the store and the
/// layers below it. `store_dir` is the store's folder; empty: as the environment has it.
std::vector<std::string> manifest_folders(std::string_view store_dir = {});

/// Whether a file is one of this program's own package: in one of those folders but
/// CUBIST_MANIFESTS, owned by root or the user, and not to be written by everybody. It is as
/// trusted as the program.
bool is_shipped(const std::string& path);

/// The file that `name` means: the name itself where it has a "/" or ends in ".json", else
/// NAME.json in the first of manifest_folders(store_dir) that has it.
///
/// errors  kNotFound: says where it was looked for
Result<std::string> find_manifest(std::string_view name, std::string_view store_dir = {});

/// Names of the shipped manifests that are found, each once, sorted.
std::vector<std::string> shipped_manifests();

}  // namespace cubist::runtime
