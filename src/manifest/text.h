#pragma once

#include <string>
#include <string_view>

namespace cubist {

/// A text from a file as a message may show it: in quotes, cut to a sane length, control characters
/// and quotes as escapes, so that no input can write to a terminal what it likes.
std::string shown(std::string_view text);

/// The same without quotes and note, cut to max_length bytes.
std::string visible(std::string_view text, std::size_t max_length);

/// One step of a JSON pointer: "~" and "/" escaped as RFC 6901 says, control characters as in
/// shown().
std::string pointer_step(std::string_view key);

/// The first byte of `text` that is a control character (C0 or DEL); npos if none.
std::size_t find_control(std::string_view text);

}  // namespace cubist
