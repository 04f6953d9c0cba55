#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist::bundle {

/// A kernel in a bundle.
struct Kernel {
  Sha256Digest sha256;
  std::uint64_t size_bytes = 0;

  auto operator<=>(const Kernel&) const = default;
};

/// A member that is no kernel.
struct Part {
  std::string path;  ///< of the member
  Sha256Digest sha256;
  std::uint64_t size_bytes = 0;

  bool operator==(const Part&) const = default;
};

/// A manifest in a bundle, and its minisign signature if there is one.
struct ManifestPart {
  std::string name;  ///< what it is called by once installed
  Part text;
  std::optional<Part> signature;

  bool operator==(const ManifestPart&) const = default;
};

/// Where the kernels of one pack come from, as its manifest says.
struct PackOrigin {
  std::string name;
  std::string version;
  std::string license;               ///< SPDX identifier
  std::vector<std::string> sources;  ///< as parse_source reads them, without credentials

  bool operator==(const PackOrigin&) const = default;
};

/// What bundle.json says: the name of every other member with its digest, and where it is all from.
/// The SHA-256 of its text is the bundle's identity. Nothing in it depends on when, where or by
/// whom it was made.
struct Description {
  static constexpr std::int32_t kSchemaVersion = 1;

  std::string name;
  std::string tool;                     ///< "cubist 0.1.0"
  std::vector<PackOrigin> packs;        ///< those that kernels come from
  std::vector<ManifestPart> manifests;  ///< by name, each name once in any case of letters
  std::optional<Part> license;
  std::optional<Part> notice;
  std::vector<Kernel> kernels;  ///< by digest, each once

  std::uint64_t kernel_bytes() const;
  bool operator==(const Description&) const = default;
};

/// Deterministic, one kernel a line; parse_description gives back an equal one.
std::string write_description(const Description& description);

/// Strict: unknown members, names that are not those of layout.h, and anything out of order are
/// errors. errors  kIntegrity: "bundle.zip: bundle.json: /kernels/3/sha256: what is wrong"
///
/// bundle  what messages call the file it is from
Result<Description> parse_description(std::string_view text, std::string_view bundle);

}  // namespace cubist::bundle
