#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace cubist::tools {

/// A document on standard output, indented and with a newline behind it. Bytes that are no UTF-8,
/// as in a file's name, become U+FFFD.
void print_json(const nlohmann::ordered_json& document);

/// {"code", "exit_code", "message"}: what an error is in every document (docs/errors.md). Stands at
/// "error" of the document for what the run ends with, and at "error" of an item of a list for
/// what is wrong with that.
nlohmann::ordered_json error_json(const Error& error);

/// The same as a text without line ends.
std::string error_json_text(const Error& error);

/// A document, with `outcome` at "error" if it failed.
void print_json(nlohmann::ordered_json document, const Status& outcome);

}  // namespace cubist::tools
