#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "deployment_flags.h"

namespace cubist::tools {

struct CompareArguments {
  std::string before;  ///< "MANIFEST[,device=NAME][,revision=NAME]"
  std::string after;
  std::string device;  ///< of sides that name none
  ModelFlags model;
  bool strict = false;
  std::map<std::string, std::string, std::less<>> texts;  ///< the problem flags, by field
};

/// `cubist select --compare`: what the second side chooses otherwise than the first, as text or
/// JSON.
/// errors  those of the manifests, presets and ranges; kInvalidArgument: a side that is not written
///         as above
Result<std::string> run_compare(const CompareArguments& arguments, bool json);

}  // namespace cubist::tools
