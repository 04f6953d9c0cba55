#include "oci/image.h"

#include "support/catch.h"

using cubist::StatusCode;
using namespace cubist::oci;  // NOLINT(google-build-using-namespace): its names are all it is about

namespace {

Descriptor blob(std::string_view type, std::uint8_t seed, std::uint64_t size) {
  Descriptor made{std::string(type), {}, size};
  made.digest.bytes.fill(seed);
  return made;
}

Image made_image() {
  Image image;
  image.config = blob(kConfigType, 1, 200);
  image.head = blob(kHeadType, 2, 1000);
  image.index = blob(kIndexType, 3, 300);
  image.shards = {blob(kShardType, 4, 5000), blob(kShardType, 5, 6000)};
  image.tail = blob(kTailType, 6, 400);
  image.title = "a \"name\"";
  return image;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void check_refused(const std::string& text, const std::string& words) {
  INFO(text.substr(0, 2000));
  const auto image = parse_image(text, "oci://h/n:t");
  REQUIRE_FALSE(image);
  CHECK(image.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(image.error().message(), Catch::Contains(words));
  CHECK_THAT(image.error().message(), Catch::Contains("oci://h/n:t"));
}

}  // namespace

TEST_CASE("an image manifest is read as it was written") {
  const Image made = made_image();
  const auto read = parse_image(write_image(made), "m");
  REQUIRE(read);
  CHECK(read->config == made.config);
  CHECK(read->head == made.head);
  CHECK(read->index == made.index);
  CHECK(read->shards == made.shards);
  CHECK(read->tail == made.tail);
  CHECK(read->title == made.title);
  CHECK(read->file_bytes() == 12'400);
}

TEST_CASE("members that others add, as copying tools do, are no harm") {
  const std::string text = write_image(made_image());
  CHECK(parse_image(replaced(text, "\"schemaVersion\"", "\"future\":[{}],\"schemaVersion\""), "m"));
  CHECK(parse_image(replaced(text, "\"artifactType\":\"application/vnd.cubist.bundle.v1\",", ""),
                    "m"));
  CHECK(parse_image(
      replaced(text, "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",", ""), "m"));
}

TEST_CASE("indexes, manifest lists and other artifacts are told from bundles") {
  for (const char* type : {"application/vnd.oci.image.index.v1+json",
                           "application/vnd.docker.distribution.manifest.list.v2+json"}) {
    check_refused(
        std::string(R"({"schemaVersion":2,"mediaType":")") + type + R"(","manifests":[]})",
        "index of several manifests");
  }
  check_refused(R"({"schemaVersion":2,"manifests":[{}]})", "index of several manifests");
  check_refused(
      R"({"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json"})",
      "found a manifest of type");
  check_refused(replaced(write_image(made_image()), std::string(kConfigType),
                         "application/vnd.oci.image.config.v1+json"),
                "found an artifact of type 'application/vnd.oci.image.config.v1+json'");
  check_refused(
      R"({"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json"}})",
      "found an artifact of type 'application/vnd.oci.image.config.v1+json'");
  check_refused(R"({"schemaVersion":1,"fsLayers":[]})", "found an artifact of type");
}

TEST_CASE("foreign, missing and misplaced layers are refused by place") {
  const std::string text = write_image(made_image());
  check_refused(
      replaced(text, std::string(kShardType), "application/vnd.oci.image.layer.v1.tar+gzip"),
      "/layers/2/mediaType");
  check_refused(replaced(text, std::string(kIndexType), std::string(kHeadType)),
                "/layers/1/mediaType");
  Image none = made_image();
  none.shards.clear();
  check_refused(write_image(none), "3 layers, expected 4 to");
  Image many = made_image();
  many.shards.assign(kMaxLayers, many.shards.front());
  check_refused(write_image(many), "layers, expected 4 to");
}

TEST_CASE("sizes and digests that lie are refused by place") {
  const std::string text = write_image(made_image());
  for (const char* size : {"-1", "0", "1e3", "\"5000\"", "1099511627777", "99999999999999999999"}) {
    check_refused(replaced(text, "\"size\":5000", std::string("\"size\":") + size),
                  "/layers/2/size");
  }
  check_refused(replaced(text, "\"size\":200", "\"size\":1048577"), "/config/size");
  check_refused(replaced(text, "\"size\":300", "\"size\":268435457"), "/layers/1/size");
  check_refused(replaced(text, "sha256:0404", "sha256:0404f"), "/layers/2/digest");
  check_refused(replaced(text, "sha256:0404", "sha512:0404"), "/layers/2/digest");
  check_refused(replaced(text, "sha256:0404", "sha256:..04"), "/layers/2/digest");
  Image large = made_image();
  large.shards.assign(2, blob(kShardType, 4, kMaxBundleBytes));
  check_refused(write_image(large), "/layers");
  check_refused(replaced(text, "\"schemaVersion\":2", "\"schemaVersion\":1"), "/schemaVersion");
}

TEST_CASE("a manifest over its limits is refused, the largest is read") {
  const std::string text = write_image(made_image());
  const auto with_annotation = [&](std::size_t bytes) {
    return replaced(text, "\"annotations\":{",
                    "\"annotations\":{\"a\":\"" + std::string(bytes, 'x') + "\",");
  };
  CHECK(parse_image(with_annotation(200'000), "m"));
  check_refused(with_annotation(kMaxAnnotationBytes), "annotations of more than 262144 bytes");
  check_refused(with_annotation(kMaxImageBytes), "more than the 4194304 bytes");
  check_refused(replaced(text, "\"annotations\":{", "\"annotations\":{\"a\":7,"), "/annotations/a");
  check_refused(std::string(100'000, '['), "nested");
  check_refused("{\"layers\":1,\"layers\":1}", "twice");
  check_refused("", "not a JSON");
  check_refused("[]", "not a JSON object");
}

TEST_CASE("a config is read as it was written, and is held to its image") {
  const Image image = made_image();
  Config config;
  config.name = "set";
  config.identity.bytes.fill(9);
  config.file_bytes = image.file_bytes();
  config.num_kernels = 20;
  config.index = image.index.digest;
  const std::string text = write_config(config);
  const auto read = parse_config(text, image, "c");
  REQUIRE(read);
  CHECK(*read == config);
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& words) {
    const auto other = parse_config(replaced(text, from, to), image, "c");
    REQUIRE_FALSE(other);
    CHECK(other.error().code() == StatusCode::kIntegrity);
    CHECK_THAT(other.error().message(), Catch::Contains(words));
  };
  refused("\"file_bytes\":12400", "\"file_bytes\":12401", "/file_bytes");
  refused("sha256:0303", "sha256:0403", "/index");
  refused("cubist.bundle.config", "other", "/schema");
  refused("\"schema_version\":1", "\"schema_version\":2", "/schema_version");
  refused("\"kernels\":20", "\"kernels\":-1", "/kernels");
  refused("{", "[", "not a JSON");
}
