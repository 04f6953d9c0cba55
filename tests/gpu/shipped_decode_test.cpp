#include "base/file.h"
#include "base/sha256.h"
#include "cubin/cross_check.h"
#include "manifest/parse.h"
#include "manifest/write.h"
#include "support/catch.h"

namespace cubist {
namespace {

const std::string kManifest = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";
const std::string kPrebuilt = CUBIST_SOURCE_DIR "/kernels/prebuilt/";

TEST_CASE("the shipped decode manifest is written as the library writes it") {
  const Result<Manifest> manifest = load_manifest(kManifest);
  REQUIRE(manifest);
  const Result<std::string> text = read_text_file(kManifest, 1U << 20);
  REQUIRE(text);
  CHECK(write_manifest(*manifest) == *text);
}

TEST_CASE("every shipped decode cubin says of itself what the manifest says of it") {
  const Result<Manifest> manifest = load_manifest(kManifest);
  REQUIRE(manifest);
  REQUIRE(manifest->packs.size() == 1);
  const Pack& pack = manifest->packs[0];
  CHECK(pack.kernels.size() == 93);
  std::uint64_t total = 0;
  for (const KernelRecord& record : pack.kernels) {
    INFO(record.name);
    const Result<std::vector<std::uint8_t>> bytes = read_file(kPrebuilt + record.file(), 1U << 20);
    REQUIRE(bytes);
    CHECK(bytes->size() == record.size_bytes);
    CHECK(sha256(*bytes) == record.sha256);
    const Result<CubinFile> cubin = parse_cubin(*bytes, record.name);
    REQUIRE(cubin);
    for (const Disagreement& one : cross_check(*cubin, record, pack.param_layout)) {
      FAIL_CHECK(to_string(one));
    }
    total += bytes->size();
  }
  CHECK(total < 7000000);  // they lie in the repository
}

}  // namespace
}  // namespace cubist
