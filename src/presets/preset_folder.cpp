#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "presets/library.h"

namespace cubist::presets {

std::string default_preset_folder() {
  if (const char* folder = std::getenv("CUBIST_PRESETS"); folder != nullptr && *folder != '\0') {
    return folder;
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "share/cubist/presets";
  return (program.parent_path().parent_path() / "share/cubist/presets").string();
}

}  // namespace cubist::presets
