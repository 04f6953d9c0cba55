#pragma once

#include <string>
#include <vector>

#include "bundle_selection.h"
#include "command.h"
#include "fetch_support.h"

namespace cubist::tools {

struct BundleCreateArguments {
  BundleSelection selection;
  std::string output;
  std::string name;  ///< of the bundle; empty: its manifests' names
  std::string store;
  bool stored = false;
  std::vector<std::string> license_files;
  std::vector<std::string> notice_files;
  SourceArguments source;
};

ExitCode run_bundle_create(const BundleCreateArguments& arguments, const CommonOptions& common);

}  // namespace cubist::tools
