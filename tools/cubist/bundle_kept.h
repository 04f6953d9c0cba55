#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace cubist::tools {

ExitCode run_bundle_list(const std::string& store, const CommonOptions& common);

struct BundleRemoveArguments {
  std::vector<std::string> bundles;  ///< by identity, the first digits of it, name or path
  std::vector<std::string> pins;
  std::string store;
  bool manifests = false;
  bool dry_run = false;
};

ExitCode run_bundle_remove(const BundleRemoveArguments& arguments, const CommonOptions& common);

}  // namespace cubist::tools
