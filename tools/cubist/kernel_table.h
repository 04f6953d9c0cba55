#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "manifest/manifest.h"

namespace cubist::tools {

/// A kernel of a manifest, for printing.
struct KernelRow {
  const Pack* pack = nullptr;
  const KernelRecord* record = nullptr;
};

/// A table for people: one kernel a line, columns as wide as needed, the name last.
std::string kernel_table(const std::vector<KernelRow>& rows);

/// A kernel with all its traits, those with default values too; keys as in the manifest.
nlohmann::ordered_json kernel_json(const KernelRow& row);

}  // namespace cubist::tools
