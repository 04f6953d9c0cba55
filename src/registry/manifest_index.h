#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "manifest/kernel_index.h"
#include "manifest/manifest.h"
#include "registry/store.h"

namespace cubist {

/// Large manifests in a form that opens without parsing, beside the entries of a store
/// (docs/design/fetch-store.md, "The index of a manifest"). Only ever a short cut: a file that is
/// missing, damaged, old, of another version or of another user is passed over, and what cannot be
/// written is not.
class ManifestIndex {
 public:
  /// A manifest below this parses faster than a file is opened twice over. Unit: bytes.
  static constexpr std::uint64_t kMinManifestBytes = 1 << 20;
  /// A file that changed less than this ago may change again within one tick of its file system's
  /// clock, unseen: no index is written of it yet. Unit: nanoseconds.
  static constexpr std::int64_t kSettledNs = 2'000'000'000;

  /// manifest_path  the file's name as it is given to load(); an index is found by the absolute one
  /// settled_ns     0 only for tests
  ManifestIndex(const Store& store, std::string manifest_path, std::int64_t settled_ns = kSettledNs)
      : store_(store), path_(std::move(manifest_path)), settled_ns_(settled_ns) {}

  /// The manifest, as load_manifest() gives it, but from its index where the file is, by stat, the
  /// one that was parsed. Otherwise it is parsed, and an index written for the next time.
  /// errors  those of load_manifest
  Result<Manifest> load() const;

  /// The same of a text that was read from the file already, since a signature or a pinned hash was
  /// to be checked: hashed, and looked up by that hash alone.
  Result<Manifest> parse(const std::string& text) const;

  /// The index that load() would use now: its path; nullopt if it would parse.
  std::optional<std::string> current() const;

  /// Where load() writes: <root>/index/<checksum of the manifest's path and the version>-<uid>.kidx
  std::string file() const;

 private:
  struct Found;

  std::string name_of(unsigned uid) const;
  std::optional<Found> find(const std::optional<FileIdentity>& identity,
                            const std::optional<Sha256Digest>& sha256) const;
  std::optional<Manifest> read(const Found& found) const;
  Result<Manifest> parse_as(const std::string& text, const std::optional<FileIdentity>& file) const;
  void save(const Manifest& manifest, const KernelIndexHead& head) const;

  const Store& store_;
  std::string path_;
  std::int64_t settled_ns_;
};

/// What stat says of a regular file; nullopt: it is none, or cannot be looked at.
std::optional<FileIdentity> file_identity(const std::string& path);

}  // namespace cubist
