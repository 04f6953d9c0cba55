#include "recordings.h"

#include <zlib.h>

#include "manifest/parse.h"
#include "support/catch.h"

namespace cubist::test {

OpenedManifest open_shipped(const std::string& name) {
  OpenedManifest opened;
  auto manifest = load_manifest(std::string(CUBIST_SOURCE_DIR "/manifests/") + name + ".json");
  if (!manifest) FAIL(manifest.error().message());
  opened.manifest = std::move(*manifest);
  std::vector<selector::PackView> views;
  for (const Pack& pack : opened.manifest.packs) {
    views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
  }
  auto table = selector::KernelTable::build(views);
  if (!table) FAIL(table.error().message());
  opened.table = std::move(*table);
  return opened;
}

std::vector<std::string> read_recordings(const std::string& file_name) {
  const std::string path = std::string(CUBIST_SOURCE_DIR "/tests/golden/select/") + file_name;
  gzFile file = gzopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  std::vector<std::string> lines;
  std::string line;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (gzgets(file, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    line += buffer.data();
    if (line.back() != '\n') continue;
    line.pop_back();
    lines.push_back(std::move(line));
    line.clear();
  }
  REQUIRE(gzclose(file) == Z_OK);
  REQUIRE(line.empty());
  return lines;
}

}  // namespace cubist::test
