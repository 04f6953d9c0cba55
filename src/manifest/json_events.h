#pragma once

#include <string>
#include <string_view>

#include "manifest/manifest_reader.h"

namespace cubist {

/// Reads a JSON text into `reader`, fast: simdjson checks the whole text and makes a tree of it,
/// whose parts then go to the reader's event functions in their order.
///
/// text    read where it lies if its string has kRoomBehindText bytes to spare, else copied
/// Result  false: the text is no JSON, or the reader would not have it. Neither is worth words
///         here: explain_json() finds them.
bool read_json(const std::string& text, ManifestReader& reader);

/// The same by a parser that gives events as it goes and says at which line and column a text
/// stops being JSON. Ten times slower.
/// Result  false: the reason is in reader.take_error()
bool explain_json(std::string_view text, ManifestReader& reader);

}  // namespace cubist
