#pragma once

#include <cstdint>
#include <string_view>

#include "document/document.h"

namespace cubist::trust {

/// 2^53 - 1: what every reader of JSON keeps exactly.
inline constexpr std::int64_t kMaxSerial = (std::int64_t{1} << 53) - 1;

/// The keys that signed documents begin with: schema, schema_version 1, serial (1 or more).
/// Complains in the document.
void read_head(const DocumentNode& root, std::string_view schema, std::int64_t& serial);

}  // namespace cubist::trust
