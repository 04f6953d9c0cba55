#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cubist::tools {

/// Sets the environment variables that the user's configuration file gives and nobody set: file <
/// environment < flags. To be called once, before anything asks for them and before threads start.
///
/// errors  those of config::load_configuration
Status apply_configuration();

struct AppliedConfiguration {
  std::string file;                    ///< where it is looked for; empty: nowhere
  std::vector<std::string> variables;  ///< names that it set
};
const AppliedConfiguration& applied_configuration();

}  // namespace cubist::tools
