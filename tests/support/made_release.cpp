#include "support/made_release.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "manifest/parse.h"
#include "manifest/write.h"
#include "support/synthetic.h"
#include "support/zip_writer.h"

namespace cubist::test {
namespace fs = std::filesystem;

void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::uint8_t> read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

MadeRelease::MadeRelease(std::size_t kernels, std::size_t kernel_bytes) {
  // Traits of a real kernel, so that the manifest passes every check; the bytes are none.
  auto shipped = load_manifest(CUBIST_SOURCE_DIR "/manifests/cubist-decode.json");
  if (!shipped) throw std::runtime_error(shipped.error().message());
  manifest_.name = "release";
  manifest_.description = "made for a test";
  Pack pack = shipped->packs[0];
  const KernelRecord model = pack.kernels[0];
  pack.kernels.clear();
  pack.sources.clear();
  std::vector<ZipInput> members{{"pack/__init__.py", "", false, false, false}};
  for (std::size_t i = 0; i < kernels; ++i) {
    bytes_.push_back(synthetic_bytes(static_cast<std::uint32_t>(i), kernel_bytes + i));
    KernelRecord record = record_of(fmt::format("kernel_{:05}", i), bytes_.back());
    record.traits = model.traits;
    members.push_back({kPrefix + record.file(),
                       {bytes_.back().begin(), bytes_.back().end()},
                       i % 2 == 0,
                       false,
                       false});
    write_bytes(tree() + "/" + kPrefix + record.file(), bytes_.back());
    pack.kernels.push_back(std::move(record));
  }
  manifest_.packs.push_back(std::move(pack));
  write_bytes(wheel(), make_zip(members).bytes);
}

std::vector<FetchItem> MadeRelease::items(std::size_t count) const {
  std::vector<FetchItem> items;
  const Pack& pack = manifest_.packs[0];
  for (std::size_t i = 0; i < std::min(count, pack.kernels.size()); ++i) {
    items.push_back({&pack, &pack.kernels[i]});
  }
  return items;
}

std::string MadeRelease::write_manifest_file() const {
  const std::string text = write_manifest(manifest_);
  write_bytes(scratch_ / "manifest.json", {text.begin(), text.end()});
  return scratch_ / "manifest.json";
}

bool MadeRelease::in_store(std::size_t kernel) const {
  const auto opened = store().open_verified(kernels()[kernel]);
  return opened && opened->has_value();
}

std::size_t MadeRelease::count_store_files(const std::string& below) const {
  std::size_t count = 0;
  const std::string folder = store_root() + "/" + below;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

std::size_t MadeRelease::count_unfinished_files() const {
  const std::string folder = store_root() + "/tmp";
  if (!fs::exists(folder)) return 0;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    count += entry.path().extension() == ".resume" ? 0 : 1;
  }
  return count;
}

FetchOptions impatient_options() {
  FetchOptions options;
  auto profile = std::make_shared<HttpProfile>();
  profile->connect_timeout = std::chrono::milliseconds(2'000);
  profile->stall_timeout = std::chrono::milliseconds(400);
  profile->retry = {3, std::chrono::milliseconds(10), std::chrono::milliseconds(50),
                    std::chrono::seconds(5)};
  options.profile = std::move(profile);
  return options;
}

}  // namespace cubist::test
