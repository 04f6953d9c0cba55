#pragma once

#include <CLI/App.hpp>

namespace cubist::tools {

/// Has the parser refuse, for every option of the application and its commands, values that it
/// takes for others by itself: an empty text (which reads as "not given"), a number below 0 or too
/// large where numbers have no sign (which wraps), and "nan" (which passes every range).
/// To be called when all commands are there.
void refuse_odd_values(CLI::App& app);

}  // namespace cubist::tools
