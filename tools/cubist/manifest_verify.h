#pragma once

#include "command.h"

namespace cubist::tools {

/// `cubist manifest verify`.
void add_manifest_verify(CLI::App& parent, CommandContext context);

}  // namespace cubist::tools
