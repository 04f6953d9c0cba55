#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/zip.h"
#include "base/result.h"
#include "model/verified_cubin.h"

namespace cubist {

/// A bundle file in a store, <root>/bundles/<64 hex digits>.zip, read kernel by kernel. Its
/// directory is only a hint: which kernels it has, and where, is what somebody wrote there, and a
/// kernel's bytes are hashed before anybody gets them. Immutable; safe from any thread.
class StoredBundle {
 public:
  struct Kernel {
    Sha256Digest sha256;
    std::uint64_t size_bytes = 0;  ///< as the directory claims
    std::size_t member = 0;
  };

  /// Opens a bundle of a store, and marks it as in use while the result lives; touches nothing
  /// else. errors  kNotFound; kIntegrity: no regular file, or no zip; kIo
  static Result<std::shared_ptr<const StoredBundle>> open(const std::string& path);
  /// The same of bytes that are elsewhere; name() is its path.
  static Result<std::shared_ptr<const StoredBundle>> read_directory(
      std::shared_ptr<RandomAccess> file);

  const std::string& path() const { return zip_.name(); }
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// By digest, each once.
  std::span<const Kernel> kernels() const { return kernels_; }
  /// Null if it has none.
  const Kernel* find(const Sha256Digest& digest) const;
  /// What messages call a kernel's place: FILE:MEMBER
  std::string place_of(const Kernel& kernel) const;

  /// A kernel of this bundle: read once, inflated, hashed.
  /// errors  kIntegrity: another size than `size_bytes`, damaged, other bytes than its name says;
  ///         kIo
  Result<VerifiedCubin> open_verified(const Kernel& kernel, std::uint64_t size_bytes) const;

 private:
  StoredBundle(ZipArchive zip, std::uint64_t file_bytes);

  ZipArchive zip_;
  std::uint64_t file_bytes_;
  std::vector<Kernel> kernels_;
};

}  // namespace cubist
