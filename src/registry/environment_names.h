#pragma once

#include <string>
#include <vector>

namespace cubist {

/// Names of `environment` (NAME=value) that begin with CUBIST_ and mean nothing to this version.
/// CUBIST_TEST_ and CUBIST_FAKE_ are left to test programs.
std::vector<std::string> unknown_environment_names(const char* const* environment);

/// Warns once in a process: a renamed or misspelt setting must not be passed over in silence.
void warn_about_unknown_environment();

}  // namespace cubist
