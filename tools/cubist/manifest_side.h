#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "manifest/manifest.h"
#include "selector/kernel_table.h"

namespace cubist::tools {

/// One of two things that are looked at beside each other:
/// "MANIFEST[,device=NAME][,revision=NAME]".
struct ManifestSide {
  std::string text;    ///< as it was given
  std::string device;  ///< preset's name; empty: not given
  Manifest manifest;   ///< what the table points into: not moved once it is built
  selector::KernelTable table;
};

/// errors  kInvalidArgument: not written as above, or a revision that is not for the manifest's
///         kernels; those of find_manifest and load_manifest
Result<std::unique_ptr<ManifestSide>> open_side(const std::string& text);

}  // namespace cubist::tools
