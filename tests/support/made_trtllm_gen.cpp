#include "support/made_trtllm_gen.h"

#include <filesystem>
#include <fstream>

#include "manifest/parse.h"
#include "manifest/write.h"
#include "support/synthetic_cubin.h"

namespace cubist::test {
namespace {

std::vector<std::uint8_t> cubin_of(const KernelRecord& record, std::uint32_t param_bytes) {
  SyntheticKernel kernel;
  kernel.name = record.name;
  kernel.params = {param_bytes};
  kernel.threads = {record.traits.threads, 1, 1};
  SyntheticCubin cubin;
  cubin.arch = record.traits.arch;
  cubin.kernels = {kernel};
  return make_cubin(cubin).bytes;
}

void write_file(const std::string& path, const char* bytes, std::size_t size) {
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
}

}  // namespace

std::string write_trtllm_gen(const std::string& source_dir, const std::string& folder,
                             const std::string& release, const std::set<std::string>& kernels,
                             std::uint32_t param_bytes) {
  auto manifest = load_manifest(source_dir + "/manifests/flashinfer-" + release + ".json").value();
  for (Pack& pack : manifest.packs) {
    const std::uint32_t declared =
        param_bytes != 0 ? param_bytes : param_layout_bytes(pack.param_layout);
    pack.sources = {{Source::Kind::kFolder, "cubins", ""}};
    for (KernelRecord& record : pack.kernels) {
      if (!kernels.contains(std::string(record.name))) continue;
      const std::vector<std::uint8_t> bytes = cubin_of(record, declared);
      record.sha256 = sha256(bytes);
      record.size_bytes = bytes.size();
      const std::string path = folder + "/cubins/" + record.file();
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      write_file(path, reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  const std::string text = write_manifest(manifest);
  write_file(folder + "/manifest.json", text.data(), text.size());
  return folder + "/manifest.json";
}

}  // namespace cubist::test
