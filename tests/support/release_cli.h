#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/made_release.h"
#include "support/tool.h"

namespace cubist::test {

/// The command line on a made release and a store of its own.
class ReleaseCli {
 public:
  explicit ReleaseCli(std::size_t kernels = 3, std::size_t kernel_bytes = 50'000)
      : release(kernels, kernel_bytes) {
    set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  }

  /// The source that the manifest names from now on.
  void set_source(const Source& source) {
    release.set_sources({source});
    manifest = release.write_manifest_file();
  }
  /// `cubist COMMAND -m MANIFEST --store STORE MORE...`
  ToolRun run(const std::string& command, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{command, "-m", manifest, "--store", release.store_root()};
    all.insert(all.end(), more.begin(), more.end());
    return run_tool(all);
  }
  ToolRun fetch(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--stall-timeout",   "0.4", "--tries", "2",
                                 "--connect-timeout", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return run("fetch", all);
  }
  std::string entry(std::size_t kernel) const {
    return entry_path(release.store_root(), release.kernels()[kernel].sha256);
  }
  void overwrite(std::size_t kernel, const std::string& text) const {
    std::filesystem::permissions(entry(kernel), std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::ofstream(entry(kernel), std::ios::binary | std::ios::trunc) << text;
  }
  std::vector<ino_t> inodes() const {
    std::vector<ino_t> all;
    for (std::size_t i = 0; i < release.kernels().size(); ++i) {
      struct stat info {};
      all.push_back(::stat(entry(i).c_str(), &info) == 0 ? info.st_ino : 0);
    }
    return all;
  }

  MadeRelease release;
  std::string manifest;
};

}  // namespace cubist::test
