#pragma once

#include <string>
#include <vector>

#include "manifest/parse.h"
#include "presets/library.h"
#include "selector/kernel_table.h"
#include "support/catch.h"

namespace cubist::test {

/// A shipped manifest and the table over it, read once.
struct Published {
  Manifest manifest;
  std::vector<selector::PackView> packs;
  selector::KernelTable table;

  explicit Published(const std::string& name) {
    auto loaded = load_manifest(CUBIST_SOURCE_DIR "/manifests/" + name + ".json");
    if (!loaded) FAIL(loaded.error().message());
    manifest = std::move(*loaded);
    for (const Pack& pack : manifest.packs) {
      packs.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
    }
    auto built = selector::KernelTable::build(packs);
    if (!built) FAIL(built.error().message());
    table = std::move(*built);
  }
};

inline const Published& flashinfer_0_6_13() {
  static const Published published("flashinfer-0.6.13");
  return published;
}

inline const Published& flashinfer_0_6_8() {
  static const Published published("flashinfer-0.6.8");
  return published;
}

inline const presets::Library& shipped_presets() {
  static const presets::Library library = [] {
    auto loaded = presets::Library::load(CUBIST_SOURCE_DIR "/data/presets", {});
    if (!loaded) FAIL(loaded.error().message());
    return std::move(*loaded);
  }();
  return library;
}

}  // namespace cubist::test
