#pragma once

#include <cstdint>
#include <string_view>

#include "document/document.h"

namespace cubist {

/// The members that documents of ours begin with: "schema", which must be this one, and
/// "schema_version", of which only this one is known. Complains in the document, of a root that is
/// no object, too.
void read_schema(const DocumentNode& root, std::string_view schema, std::int32_t version = 1);

}  // namespace cubist
