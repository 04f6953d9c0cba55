#pragma once

#include <string>
#include <string_view>

namespace cubist {

// What people may see of a text that could hold credentials: three views, each hiding more.

/// Whether a scheme and "://" are in front: "https://h", but not "/folder://x".
bool begins_as_url(std::string_view text);

/// Any text, of ours or from elsewhere (curl, pip), with "user:password@" and the query of each URL
/// blotted out: what errors and log lines are printed as.
std::string without_credentials(std::string_view text);

/// One value of a setting, flag or answer as messages show it: without user information, query and
/// fragment of a URL, also where the value is none because something in it is wrong. Other values
/// are shown as they are.
std::string shown_value(std::string_view value);

/// Text to be pasted anywhere: of each URL the scheme is left, and nothing of what one of the above
/// has blotted out credentials of.
std::string without_servers(std::string_view text);

}  // namespace cubist
