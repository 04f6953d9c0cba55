#include "oci/image.h"

#include <algorithm>

#include "document/document.h"
#include "document/json_text.h"
#include "document/schema_head.h"

namespace cubist::oci {
namespace {

constexpr std::string_view kConfigSchema = "cubist.bundle.config";
constexpr std::string_view kTitle = "org.opencontainers.image.title";
constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::string_view kIndexTypes[] = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json"};

std::string json_of(const Descriptor& descriptor) {
  return fmt::format(R"({{"mediaType":{},"digest":"{}","size":{}}})",
                     json_string(descriptor.media_type), digest_text(descriptor.digest),
                     descriptor.size_bytes);
}

void read_digest(const DocumentNode& node, Sha256Digest& out) {
  std::string text;
  if (!node.read(text)) return;
  const auto digest = text.starts_with(kDigestPrefix)
                          ? Sha256Digest::parse(std::string_view(text).substr(kDigestPrefix.size()))
                          : std::nullopt;
  if (!digest || digest_text(*digest) != text) {
    return node.complain(
        fmt::format("found {}, expected sha256: and 64 hexadecimal digits", in_quotes(text)));
  }
  out = *digest;
}

void read_size(const DocumentNode& node, std::uint64_t most, std::uint64_t& out) {
  std::int64_t value = 0;
  if (node.read_integer(value, 0, static_cast<std::int64_t>(most))) {
    out = static_cast<std::uint64_t>(value);
  }
}

void read_annotations(const DocumentNode& node, std::uint64_t& bytes, std::string* title) {
  for (const std::string& key : node.keys()) {
    std::string value;
    if (!node.member(key).read(value)) continue;
    bytes += key.size() + value.size();
    if (title != nullptr && key == kTitle) *title = value;
  }
  if (bytes > kMaxAnnotationBytes) {
    node.complain(fmt::format("annotations of more than {} bytes", kMaxAnnotationBytes));
  }
}

void read_descriptor(const DocumentNode& node, std::string_view type, std::uint64_t most,
                     std::uint64_t& annotation_bytes, Descriptor& out) {
  if (node.required("mediaType").read(out.media_type) && out.media_type != type) {
    node.member("mediaType")
        .complain(fmt::format("found {}, expected '{}'", in_quotes(out.media_type), type));
  }
  read_digest(node.required("digest"), out.digest);
  read_size(node.required("size"), most, out.size_bytes);
  if (out.size_bytes == 0) node.member("size").complain("found 0, expected a size in bytes");
  read_annotations(node.member("annotations"), annotation_bytes, nullptr);
}

void read_layers(const DocumentNode& node, std::uint64_t& annotation_bytes, Image& image) {
  const auto layers = node.items();
  constexpr std::size_t kLeast = 4;  // head, index, one shard, tail
  if (layers.size() < kLeast || layers.size() > kMaxLayers) {
    return node.complain(
        fmt::format("{} layers, expected {} to {}", layers.size(), kLeast, kMaxLayers));
  }
  const auto read = [&](std::size_t i, std::string_view type, std::uint64_t most, Descriptor& out) {
    read_descriptor(layers[i], type, most, annotation_bytes, out);
  };
  read(0, kHeadType, kMaxBundleBytes, image.head);
  read(1, kIndexType, kMaxIndexBytes, image.index);
  image.shards.resize(layers.size() - 3);
  for (std::size_t i = 0; i < image.shards.size(); ++i) {
    read(i + 2, kShardType, kMaxBundleBytes, image.shards[i]);
  }
  read(layers.size() - 1, kTailType, kMaxBundleBytes, image.tail);
  if (image.file_bytes() > kMaxBundleBytes) {
    node.complain(fmt::format("layers of more than {} bytes", kMaxBundleBytes));
  }
}

/// The reader of JSON blames the caller; here it is what came from a registry.
Error as_integrity(const Error& error) { return Error(StatusCode::kIntegrity, error.message()); }

/// Of a manifest that is of another kind.
Status check_kind(const DocumentNode& root, const std::string& name) {
  std::string type;
  root.member("mediaType").read(type);
  const bool list =
      std::find(std::begin(kIndexTypes), std::end(kIndexTypes), type) != std::end(kIndexTypes) ||
      (root.member("manifests").is_array() && !root.member("layers").present());
  if (list) {
    return fail(
        StatusCode::kIntegrity,
        "{}: found an index of several manifests, expected the manifest of one bundle; name "
        "the one you want by its digest (...@sha256:...)",
        name);
  }
  if (!type.empty() && type != kManifestType) {
    return fail(StatusCode::kIntegrity, "{}: found a manifest of type {}, expected '{}'", name,
                in_quotes(type), kManifestType);
  }
  std::string config;
  root.member("config").member("mediaType").read(config);
  std::string artifact;
  root.member("artifactType").read(artifact);
  const bool other_artifact = !artifact.empty() && artifact != kArtifactType;
  if (config != kConfigType || other_artifact) {
    return fail(StatusCode::kIntegrity,
                "{}: found an artifact of type {}, expected a bundle of kernels ('{}'); 'cubist "
                "push' makes one",
                name, in_quotes(other_artifact ? artifact : config),
                other_artifact ? kArtifactType : kConfigType);
  }
  return {};
}

}  // namespace

std::string digest_text(const Sha256Digest& digest) {
  return std::string(kDigestPrefix) + digest.hex();
}

std::uint64_t Image::file_bytes() const {
  // No sum of kMaxLayers sizes below kMaxBundleBytes wraps.
  std::uint64_t bytes = head.size_bytes + tail.size_bytes;
  for (const Descriptor& shard : shards) bytes += shard.size_bytes;
  return bytes;
}

std::string write_image(const Image& image) {
  std::string text = fmt::format(
      "{{\"schemaVersion\":2,\"mediaType\":\"{}\",\"artifactType\":\"{}\",\"config\":{},"
      "\"layers\":[{},{}",
      kManifestType, kArtifactType, json_of(image.config), json_of(image.head),
      json_of(image.index));
  for (const Descriptor& shard : image.shards) text += "," + json_of(shard);
  text += fmt::format(R"(,{}],"annotations":{{"{}":{}}}}})", json_of(image.tail), kTitle,
                      json_string(image.title));
  return text;
}

Result<Image> parse_image(std::string_view text, const std::string& name) {
  if (text.size() > kMaxImageBytes) {
    return fail(StatusCode::kIntegrity, "{}: more than the {} bytes a manifest may have", name,
                kMaxImageBytes);
  }
  const auto document = Document::parse(text, name);
  if (!document) return tl::unexpected<Error>(as_integrity(document.error()));
  const DocumentNode root = document->root();
  if (!root.is_object()) return fail(StatusCode::kIntegrity, "{}: not a JSON object", name);
  CUBIST_RETURN_IF_ERROR(check_kind(root, name));
  Image image;
  std::int64_t version = 0;
  root.required("schemaVersion").read_integer(version, 2, 2);
  std::uint64_t annotation_bytes = 0;
  read_descriptor(root.member("config"), kConfigType, kMaxConfigBytes, annotation_bytes,
                  image.config);
  read_layers(root.required("layers"), annotation_bytes, image);
  read_annotations(root.member("annotations"), annotation_bytes, &image.title);
  if (const Status status = document->status(); !status) {
    return tl::unexpected<Error>(as_integrity(status.error()));
  }
  return image;
}

std::string write_config(const Config& config) {
  return fmt::format(
      "{{\"schema\":\"{}\",\"schema_version\":{},\"name\":{},\"identity\":\"{}\","
      "\"file_bytes\":{},\"kernels\":{},\"index\":\"{}\"}}",
      kConfigSchema, Config::kSchemaVersion, json_string(config.name), digest_text(config.identity),
      config.file_bytes, config.num_kernels, digest_text(config.index));
}

Result<Config> parse_config(std::string_view text, const Image& image, const std::string& name) {
  const auto document = Document::parse(text, name);
  if (!document) return tl::unexpected<Error>(as_integrity(document.error()));
  const DocumentNode root = document->root();
  if (!root.is_object()) return fail(StatusCode::kIntegrity, "{}: not a JSON object", name);
  Config config;
  read_schema(root, kConfigSchema, Config::kSchemaVersion);
  root.required("name").read(config.name);
  read_digest(root.required("identity"), config.identity);
  read_digest(root.required("index"), config.index);
  read_size(root.required("file_bytes"), kMaxBundleBytes, config.file_bytes);
  read_size(root.required("kernels"), kMaxBundleBytes, config.num_kernels);
  if (config.file_bytes != image.file_bytes()) {
    root.member("file_bytes")
        .complain(fmt::format("found {}, the layers have {} bytes", config.file_bytes,
                              image.file_bytes()));
  }
  if (config.index != image.index.digest) {
    root.member("index").complain("the manifest's index layer is another");
  }
  if (const Status status = document->status(); !status) {
    return tl::unexpected<Error>(as_integrity(status.error()));
  }
  return config;
}

}  // namespace cubist::oci
