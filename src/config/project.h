#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist::config {

/// A manifest that must be this one and no other.
struct PinnedManifest {
  std::string name;  ///< what --manifest calls it
  std::string
      path;  ///< relative to the project file's folder, or absolute; empty: found by its name
  Sha256Digest sha256;  ///< of the manifest file

  bool operator==(const PinnedManifest&) const = default;
};

/// A project's file, cubist.json, kept under version control:
///
///   {
///     "schema": "cubist.project",
///     "schema_version": 1,
///     "manifests": {
///       "flashinfer-0.6.13": {"sha256": "dfa1..."},
///       "mine": {"path": "kernels/mine.json", "sha256": "0c2e..."}
///     }
///   }
struct Project {
  std::string file;
  std::vector<PinnedManifest> manifests;  ///< sorted by name, each name once

  const PinnedManifest* find(std::string_view name) const;
  void put(PinnedManifest manifest);
  /// The pin's file, if it has a path: absolute, or relative as the project file's own path is.
  std::string path_of(const PinnedManifest& manifest) const;
};

/// Whether a manifest can be called so: letters, digits and "_.-$+", the first none of ".-+", and
/// not ending in ".json", which would be a file.
bool is_manifest_name(std::string_view name);

/// errors  kInvalidArgument: not written as above; the message has file and key
Result<Project> parse_project(std::string_view text, std::string_view file_name);
std::string write_project(const Project& project);

/// The project's file for `folder`: CUBIST_PROJECT where it is set (empty: none), else cubist.json
/// there or in the nearest folder above; empty if there is none.
///
/// errors  kInvalidArgument: one lies above that another user owns, who would then choose the
/// kernels
Result<std::string> find_project_file(const std::string& folder);

/// The project at `path`. errors  those of parse_project; kNotFound, kIo
Result<Project> load_project(const std::string& path);

}  // namespace cubist::config
