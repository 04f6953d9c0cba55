#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "archive/zip_writer.h"
#include "base/result.h"
#include "bundle/description.h"
#include "model/verified_cubin.h"

namespace cubist::bundle {

/// A manifest to put into a bundle, byte for byte.
struct ManifestInput {
  std::string name;
  std::string text;
  std::optional<std::string> signature;
};

/// What a bundle shall hold. The order of manifests and kernels does not matter; a kernel may occur
/// twice.
struct Contents {
  std::string name;
  std::string tool;
  std::vector<PackOrigin> packs;
  std::vector<ManifestInput> manifests;
  std::string license;  ///< text; empty: none
  std::string notice;
  std::vector<Kernel> kernels;
};

struct WriteOptions {
  bool stored = false;   ///< do not deflate: larger, and the same bytes with every zlib
  unsigned threads = 1;  ///< that deflate; they make no difference to the bytes
  const std::atomic<bool>* cancel = nullptr;
  /// From the calling thread, after every few kernels: how many are written.
  std::function<void(std::size_t)> progress;
};

/// A kernel's bytes, from wherever they are. Called from several threads at once.
using KernelReader = std::function<Result<VerifiedCubin>(const Kernel&)>;

struct WrittenBundle {
  Description description;
  Sha256Digest identity;  ///< SHA-256 of bundle.json
  Sha256Digest sha256;    ///< of the file
  std::uint64_t file_bytes = 0;
};

/// Writes the bundle from front to back, with a few kernels in memory at a time.
///
/// errors  kInvalidArgument: no kernel, a name that is none, two manifests whose names differ in
///         case alone; kInterrupted; those of `kernels` and `sink`
Result<WrittenBundle> write_bundle(const Contents& contents, const KernelReader& kernels,
                                   const ZipWriter::Sink& sink, const WriteOptions& options = {});

}  // namespace cubist::bundle
