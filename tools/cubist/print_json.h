#pragma once

#include <nlohmann/json_fwd.hpp>

namespace cubist::tools {

/// A document on standard output, indented and with a newline behind it. Bytes that are no UTF-8,
/// as in a file's name, become U+FFFD.
void print_json(const nlohmann::ordered_json& document);

}  // namespace cubist::tools
