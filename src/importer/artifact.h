#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "importer/file_tree.h"

namespace cubist {

/// Where an FMHA release lies in a tree.
struct Artifact {
  std::string prefix;     ///< folder of its cubins: empty or ends in "/"
  std::string id;         ///< the 40 hexadecimal digits in that path; may be empty
  std::string header;     ///< path of the metadata header
  std::string checksums;  ///< path of checksums.txt; empty if there is none
};

/// The one FMHA artifact of a tree, or the one whose id or path contains `wanted`. The tree may be
/// a wheel, the folder it was unpacked to, or any folder in between. errors  kNotFound: none;
/// kInvalidArgument: several, which are listed
Result<Artifact> find_artifact(const FileTree& tree, std::string_view wanted);

/// What a wheel's METADATA says; empty where there is none.
struct WheelMetadata {
  std::string name;
  std::string version;
  std::string license;
};

WheelMetadata read_wheel_metadata(const FileTree& tree);

}  // namespace cubist
