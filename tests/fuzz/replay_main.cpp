#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "archive/zip.h"
#include "base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cubist {
namespace {

constexpr std::uint64_t kMaxInputBytes = 1 << 24;

Status replay_one(const std::string& name, const Result<std::vector<std::uint8_t>>& bytes,
                  std::size_t& inputs) {
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  std::printf("%s\n", name.c_str());
  std::fflush(stdout);  // the last line names the input that crashed
  LLVMFuzzerTestOneInput(bytes->data(), bytes->size());
  ++inputs;
  return {};
}

Status replay_folder(const std::string& path, std::size_t& inputs) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    const std::string file = entry.path().string();
    CUBIST_RETURN_IF_ERROR(replay_one(file, read_file(file, kMaxInputBytes), inputs));
  }
  return {};
}

Status replay_zip(const std::string& path, std::size_t& inputs) {
  CUBIST_ASSIGN_OR_RETURN(const auto file, open_file_access(path));
  CUBIST_ASSIGN_OR_RETURN(const ZipArchive zip, ZipArchive::open(file));
  for (const ZipMember& member : zip.members()) {
    CUBIST_RETURN_IF_ERROR(
        replay_one(path + "!" + member.name, zip.read(member, kMaxInputBytes), inputs));
  }
  return {};
}

}  // namespace
}  // namespace cubist

/// Feeds the fuzz target every file of the folders and zips given. One that does not exist is an
/// empty one; no input at all is a failure.
int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    if (!std::filesystem::exists(path)) continue;
    const cubist::Status done = std::filesystem::is_directory(path)
                                    ? cubist::replay_folder(path, inputs)
                                    : cubist::replay_zip(path, inputs);
    if (!done) {
      std::fprintf(stderr, "%s\n", done.error().message().c_str());
      return 1;
    }
  }
  std::printf("%zu inputs replayed\n", inputs);
  return inputs == 0 ? 1 : 0;
}
