#pragma once

#include "command.h"

namespace cubist::tools {

/// `cubist manifest add` and `cubist manifest list`, below `parent`.
void add_manifest_add(CLI::App& parent, CommandContext context);
void add_manifest_list(CLI::App& parent, CommandContext context);

/// Prints the manifests that have a name here; those that are not what the project pins are errors.
ExitCode list_manifests(const CommonOptions& common);

}  // namespace cubist::tools
