#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cubist {

inline constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

/// A variable's value; empty where it is not set.
std::string environment(const char* name);
/// The parts of a variable's value between any of the separators, empty ones left out.
std::vector<std::string> environment_list(const char* name, std::string_view separators);

/// What set a variable, as messages name it: its name, or what set_environment() said of it.
std::string environment_origin(const std::string& name);
/// As setenv(3), with a word on where the value is from: "config.json:3: /store". To be called
/// before threads start.
void set_environment(const std::string& name, const std::string& value, const std::string& origin);

}  // namespace cubist
