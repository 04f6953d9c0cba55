#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace cubist::tools {

/// What the parser of the command line complains about: its own words, a word that is no command
/// with the nearest that is one, and where the help is.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cubist::tools
