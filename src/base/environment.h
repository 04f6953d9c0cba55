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

}  // namespace cubist
