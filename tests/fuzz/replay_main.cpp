#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Feeds every file of the folders given to the fuzz target. A folder that does not exist is an
/// empty one; no input at all is a failure.
int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code missing;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], missing)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);  // the last line names the input that crashed
      const auto bytes = cubist::read_file(path, 1 << 24);
      if (!bytes) {
        std::fprintf(stderr, "%s\n", bytes.error().message().c_str());
        return 1;
      }
      LLVMFuzzerTestOneInput(bytes->data(), bytes->size());
      ++inputs;
    }
  }
  std::printf("%zu inputs replayed\n", inputs);
  return inputs == 0 ? 1 : 0;
}
