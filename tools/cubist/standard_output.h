#pragma once

#include "exit_code.h"

namespace cubist::tools {

/// Gives the process standard streams where it was started without: a file that is opened later
/// must not become standard output. What is printed to a closed one counts as an error of writing.
/// To be called before anything is opened.
void open_standard_streams();

/// What the process shall end with: `exit_code`, or kDisk where that is kOk and not all of standard
/// output could be written, which standard error says. A reader of a pipe who has left, as in
/// `cubist list | head -1`, has read enough: no error.
ExitCode finish_output(ExitCode exit_code);

}  // namespace cubist::tools
