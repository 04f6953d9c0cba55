#pragma once

#include <string_view>

#include "base/result.h"

namespace cubist {

/// Whether `text` is one JSON value without a key twice in one object and not deeper than 64
/// levels; the error has the place.
Status check_json_syntax(std::string_view text, std::string_view file_name);

}  // namespace cubist
