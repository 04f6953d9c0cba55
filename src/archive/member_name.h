#pragma once

#include <string>
#include <string_view>

namespace cubist {

/// Why a member's name must not be used as a path below some folder ("has a '..' part"), or an
/// empty text if it may: relative, "/"-separated, at most 1,024 bytes of valid UTF-8, no empty, "."
/// or ".." part, no backslash, no control or text-direction character. One "/" at the end marks a
/// folder.
std::string_view unsafe_member_name(std::string_view name);

/// The name as it can be shown in a message: printable ASCII stays, other bytes become \xNN, and it
/// is cut after 120 bytes.
std::string printable_member_name(std::string_view name);

}  // namespace cubist
