#pragma once

#include <string>

#include "command.h"

namespace cubist::tools {

struct BundleInspectArguments {
  std::string location;  ///< a file, or a URL that is read by ranges
  bool verify = false;
  bool offline = false;
};

ExitCode run_bundle_inspect(const BundleInspectArguments& arguments, const CommonOptions& common);

}  // namespace cubist::tools
