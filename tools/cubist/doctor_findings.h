#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cubist::tools {

/// A setting that is wrong.
struct Finding {
  bool is_error = true;  ///< other commands refuse it; else they pass it over
  std::string setting;   ///< a variable, a flag, or "config.json:5: /foreign_store"
  std::string found;     ///< its value; empty where the problem has it, or where it is a secret
  std::string problem;   ///< one sentence
  std::string allowed;   ///< empty: the problem says it
  std::string next_step;
};

/// Looks at every setting of the file, the environment and the flags, one by one, and leaves the
/// process without those that are wrong, so that whatever looks next finds the rest.
///
/// complaints  about the configuration file
std::vector<Finding> find_wrong_settings(const std::vector<Error>& complaints);

/// "CUBIST_FOREIGN_STORE: found 'no'; it must be allow, warn or refuse; correct or unset it"
std::string to_text(const Finding& finding);

}  // namespace cubist::tools
