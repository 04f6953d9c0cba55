#include "base/file.h"
#include "base/sha256.h"
#include "cubin/cross_check.h"
#include "launcher/aux_kernels.h"
#include "manifest/parse.h"
#include "manifest/write.h"
#include "support/catch.h"

namespace cubist {
namespace {

const std::string kManifest = CUBIST_SOURCE_DIR "/manifests/cubist-aux.json";
const std::string kPrebuilt = CUBIST_SOURCE_DIR "/kernels/prebuilt/aux/";

TEST_CASE("the shipped aux manifest is written as the library writes it") {
  const Result<Manifest> manifest = load_manifest(kManifest);
  REQUIRE(manifest);
  const Result<std::string> text = read_text_file(kManifest, 1U << 20);
  REQUIRE(text);
  CHECK(write_manifest(*manifest) == *text);
}

TEST_CASE("every shipped aux cubin says of itself what the manifest says of it") {
  const Result<Manifest> manifest = load_manifest(kManifest);
  REQUIRE(manifest);
  REQUIRE(manifest->packs.size() == 3);
  for (const Pack& pack : manifest->packs) {
    CHECK(pack.family == KernelFamily::kCubistAux);
    for (const KernelRecord& record : pack.kernels) {
      INFO(record.name);
      const Result<std::vector<std::uint8_t>> bytes =
          read_file(kPrebuilt + record.file(), 1U << 20);
      REQUIRE(bytes);
      CHECK(bytes->size() == record.size_bytes);
      CHECK(sha256(*bytes) == record.sha256);
      const Result<CubinFile> cubin = parse_cubin(*bytes, record.name);
      REQUIRE(cubin);
      for (const Disagreement& one : cross_check(*cubin, record, pack.param_layout)) {
        FAIL_CHECK(to_string(one));
      }
    }
  }
}

TEST_CASE("every aux kernel is shipped for sm_90, sm_100 and sm_103, once") {
  using Kind = launcher::AuxKernel::Kind;
  const Result<Manifest> manifest = load_manifest(kManifest);
  REQUIRE(manifest);
  const auto count = [&](const launcher::AuxKernel& wanted, std::uint32_t sm) {
    int found = 0;
    for (const Pack& pack : manifest->packs) {
      for (const KernelRecord& record : pack.kernels) {
        found += launcher::is_aux_kernel(record, wanted, sm) ? 1 : 0;
      }
    }
    return found;
  };
  for (const std::uint32_t sm : {90U, 100U, 103U}) {
    INFO(sm);
    for (const Dtype o : {Dtype::kBf16, Dtype::kFp16, Dtype::kE4m3}) {
      CHECK(count({Kind::kReduction, o}, sm) == 1);
    }
    CHECK(count({Kind::kLse}, sm) == 1);
    CHECK(count({Kind::kFuseScales}, sm) == 1);
  }
  CHECK(count({Kind::kLse}, 80) == 0);
}

}  // namespace
}  // namespace cubist
