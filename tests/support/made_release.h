#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "registry/fetch.h"
#include "registry/store.h"
#include "support/scratch.h"

namespace cubist::test {

/// A small release made for a test: kernels of random bytes, as a tree of files and as a wheel, and
/// a manifest that describes them.
///
///   <folder>/tree/<prefix><name>.cubin    <folder>/tree/pack-1.0-py3-none-any.whl
class MadeRelease {
 public:
  explicit MadeRelease(std::size_t kernels = 3, std::size_t kernel_bytes = 60'000);

  static constexpr const char* kPrefix = "pack/cubins/";
  static constexpr const char* kWheel = "pack-1.0-py3-none-any.whl";

  const Scratch& scratch() const { return scratch_; }
  std::string tree() const { return scratch_ / "tree"; }
  std::string wheel() const { return tree() + "/" + kWheel; }
  std::string store_root() const { return scratch_ / "store"; }
  Store store() const { return Store({store_root(), {}}); }

  Manifest& manifest() { return manifest_; }
  const std::vector<KernelRecord>& kernels() const { return manifest_.packs[0].kernels; }
  const std::vector<std::uint8_t>& bytes(std::size_t kernel) const { return bytes_[kernel]; }
  void set_sources(std::vector<Source> sources) { manifest_.packs[0].sources = std::move(sources); }

  /// All kernels, or the first `count`.
  std::vector<FetchItem> items(std::size_t count = SIZE_MAX) const;
  /// A path of a kernel below tree().
  std::string path(std::size_t kernel) const { return kPrefix + kernels()[kernel].path; }
  /// Writes the manifest to a file and says which.
  std::string write_manifest_file() const;

  /// The entry's bytes are those of the kernel.
  bool in_store(std::size_t kernel) const;
  /// Files in the store, the lock file aside.
  std::size_t count_store_files(const std::string& below = "sha256") const;
  /// Files in tmp/ that no next run can go on from.
  std::size_t count_unfinished_files() const;

 private:
  Scratch scratch_;
  std::vector<std::vector<std::uint8_t>> bytes_;
  Manifest manifest_;
};

/// Short timeouts and pauses.
FetchOptions impatient_options();

void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes);
std::vector<std::uint8_t> read_bytes(const std::string& path);

}  // namespace cubist::test
