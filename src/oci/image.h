#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist::oci {

// Media types (docs/oci.md).
inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kArtifactType = "application/vnd.cubist.bundle.v1";
inline constexpr std::string_view kConfigType = "application/vnd.cubist.bundle.config.v1+json";
inline constexpr std::string_view kHeadType = "application/vnd.cubist.bundle.head.v1";
inline constexpr std::string_view kIndexType = "application/vnd.cubist.bundle.index.v1+json";
inline constexpr std::string_view kShardType = "application/vnd.cubist.bundle.shard.v1";
inline constexpr std::string_view kTailType = "application/vnd.cubist.bundle.tail.v1";

// What is larger is refused unread. Unit: bytes.
inline constexpr std::uint64_t kMaxImageBytes = 4ULL << 20;  ///< as registries limit it
inline constexpr std::uint64_t kMaxConfigBytes = 1ULL << 20;
inline constexpr std::uint64_t kMaxIndexBytes = 256ULL << 20;
inline constexpr std::uint64_t kMaxBundleBytes = 1ULL << 40;
/// Keys and values of all annotations of an image manifest together.
inline constexpr std::uint64_t kMaxAnnotationBytes = 256ULL << 10;
inline constexpr std::size_t kMaxLayers = 8192;

/// A blob that a manifest names.
struct Descriptor {
  std::string media_type;
  Sha256Digest digest;
  std::uint64_t size_bytes = 0;

  bool operator==(const Descriptor&) const = default;
};

/// "sha256:<64 hex digits>"
std::string digest_text(const Sha256Digest& digest);

/// The image manifest of a bundle:
///
///   { "schemaVersion": 2,
///     "mediaType": kManifestType, "artifactType": kArtifactType,
///     "config": { "mediaType": kConfigType, "digest": "sha256:...", "size": N },
///     "layers": [ head, index, shard, ..., tail ],
///     "annotations": { "org.opencontainers.image.title": "<name of the bundle>" } }
struct Image {
  Descriptor config;
  Descriptor head;                 ///< the file's bytes before the first kernel
  Descriptor index;                ///< no part of the file
  std::vector<Descriptor> shards;  ///< entries of kernels
  Descriptor tail;                 ///< the zip's directory
  std::string title;

  /// Of the bundle file: all layers but the index.
  std::uint64_t file_bytes() const;
};

std::string write_image(const Image& image);

/// name    what messages call it
/// errors  kIntegrity: not the manifest of a bundle: an index or manifest list, another artifact, a
///         missing, foreign or misplaced layer, sizes that lie, too many or too long annotations
Result<Image> parse_image(std::string_view text, const std::string& name);

/// The config of a bundle:
///
///   { "schema": "cubist.bundle.config", "schema_version": 1, "name": "...",
///     "identity": "sha256:..." of bundle.json, "file_bytes": N, "kernels": N,
///     "index": "sha256:..." }
struct Config {
  static constexpr std::int32_t kSchemaVersion = 1;

  std::string name;
  Sha256Digest identity;
  std::uint64_t file_bytes = 0;
  std::uint64_t num_kernels = 0;
  Sha256Digest index;

  bool operator==(const Config&) const = default;
};

std::string write_config(const Config& config);

/// errors  kIntegrity: not that, or not the one of this image
Result<Config> parse_config(std::string_view text, const Image& image, const std::string& name);

}  // namespace cubist::oci
