#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cubist::tools {

/// Sets the environment variables that the user's configuration file gives and nobody set: file <
/// environment < flags. To be called once, before anything asks for them and before threads start.
/// A file that nobody named and that cannot be read, as in another user's home, sets nothing: the
/// problem is kept for a warning.
///
/// errors  those of config::load_configuration
Status apply_configuration();

/// The same for a command that reports what is wrong: what can be read counts.
/// Everything that is wrong with the file is in applied_configuration().complaints.
void apply_what_can_be_read();

struct AppliedConfiguration {
  std::string file;                    ///< where it is looked for; empty: nowhere
  std::vector<std::string> variables;  ///< names that it set
  std::string problem;                 ///< why it sets nothing though it is there; empty: none
  std::vector<Error> complaints;       ///< of apply_what_can_be_read()
};
const AppliedConfiguration& applied_configuration();

}  // namespace cubist::tools
