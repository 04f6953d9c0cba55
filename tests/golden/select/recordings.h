#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "selector/kernel_table.h"

namespace cubist::test {

/// A shipped manifest with the table over it.
struct OpenedManifest {
  Manifest manifest;
  selector::KernelTable table;
};

/// manifests/NAME.json of the source tree; fails the test when it cannot be read.
OpenedManifest open_shipped(const std::string& name);

/// The lines of a gzipped text file of tests/golden/select.
std::vector<std::string> read_recordings(const std::string& file_name);

}  // namespace cubist::test
