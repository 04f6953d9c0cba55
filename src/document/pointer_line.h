#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cubist {

/// One step of a JSON pointer (RFC 6901), "/key", as messages show it: cut, without control
/// characters.
std::string step_of_pointer(std::string_view key);

/// The line, from 1 on, of a place in a JSON text that is known to be one; of the innermost object
/// or array around a place that is not there.
///
/// pointer  made of step_of_pointer() and array indices; "" is the whole
std::size_t line_of_pointer(std::string_view text, std::string_view pointer);

}  // namespace cubist
