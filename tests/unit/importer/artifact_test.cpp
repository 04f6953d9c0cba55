#include "importer/artifact.h"

#include <string>

#include "memory_tree.h"
#include "support/catch.h"

namespace cubist {
namespace {

const std::string kId(40, '1');
const std::string kOther(40, '2');

TEST_CASE("an artifact is found wherever in a wheel the tree begins") {
  for (const std::string& prefix :
       {"flashinfer_cubin/cubins/" + kId + "/fmha/trtllm-gen/", kId + "/fmha/trtllm-gen/",
        std::string("trtllm-gen/"), std::string()}) {
    const test::MemoryTree tree({{prefix + "include/flashInferMetaInfo.h", ""},
                                 {prefix + "checksums.txt", ""},
                                 {"gemm/include/flashinferMetaInfo.h", ""}});
    const auto artifact = find_artifact(tree, "");
    REQUIRE(artifact);
    CHECK(artifact->prefix == prefix);
    CHECK(artifact->header == prefix + "include/flashInferMetaInfo.h");
    CHECK(artifact->checksums == prefix + "checksums.txt");
    CHECK(artifact->id == (prefix.find(kId) != std::string::npos ? kId : ""));
  }
}

TEST_CASE("of several artifacts one must be chosen") {
  const test::MemoryTree tree({{kId + "/fmha/trtllm-gen/include/flashInferMetaInfo.h", ""},
                               {kOther + "/fmha/trtllm-gen/include/flashInferMetaInfo.h", ""}});
  const auto both = find_artifact(tree, "");
  REQUIRE_FALSE(both);
  CHECK(both.error().code() == StatusCode::kInvalidArgument);
  CHECK(both.error().message().find(kOther + "/fmha") != std::string::npos);
  CHECK(find_artifact(tree, "2222")->id == kOther);
  CHECK(find_artifact(tree, "2222")->checksums.empty());
  const auto none = find_artifact(tree, "3");
  REQUIRE_FALSE(none);
  CHECK(none.error().code() == StatusCode::kNotFound);
  CHECK(none.error().message().find(kId) != std::string::npos);
}

TEST_CASE("a tree without FMHA metadata is not found") {
  const test::MemoryTree tree(
      {{"xinclude/flashInferMetaInfo.h", ""}, {"include/flashinferMetaInfo.h", ""}});
  CHECK(find_artifact(tree, "").error().code() == StatusCode::kNotFound);
}

TEST_CASE("a wheel's METADATA names version and licence") {
  const test::MemoryTree tree({{"other-1.dist-info/METADATA", "Name: other\nVersion: 1\n"},
                               {"flashinfer_cubin-0.9.dist-info/METADATA",
                                "Metadata-Version: 2.4\r\nName: flashinfer-cubin\r\nVersion: "
                                "0.9\r\nLicense: Apache-2.0\r\n\r\n"
                                "License: of the description\r\n"}});
  const WheelMetadata metadata = read_wheel_metadata(tree);
  CHECK(metadata.name == "flashinfer-cubin");
  CHECK(metadata.version == "0.9");
  CHECK(metadata.license == "Apache-2.0");
  CHECK(read_wheel_metadata(test::MemoryTree(std::map<std::string, std::string>())).name.empty());
}

}  // namespace
}  // namespace cubist
