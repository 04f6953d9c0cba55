#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kernel_record.h"
#include "registry/store.h"

namespace cubist {

/// One layer of a store as it is now. Looking writes nothing.
struct LayerStatus {
  std::string root;
  bool exists = false;
  bool writable = false;
  std::size_t entries = 0;
  std::uint64_t bytes = 0;  ///< of the entries
  std::size_t bundles = 0;
  std::size_t bundled_kernels = 0;
  std::uint64_t bundle_bytes = 0;  ///< of their files
  std::size_t unfinished = 0;      ///< files in tmp/, of living writers or dead ones
  std::size_t directories = 0;     ///< remembered directories of remote wheels
  std::optional<std::uint64_t> free_bytes;
  std::string file_system;     ///< "ext4", "nfs", ... or its number
  std::optional<Error> error;  ///< it is there, but cannot be looked into
};

/// In search order.
std::vector<LayerStatus> layer_status(const Store& store);

/// Which layer serves how much of a set of artifacts, judged by size.
struct Coverage {
  std::vector<std::size_t> served;  ///< per layer, in search order
  std::vector<const KernelRecord*> missing;
  std::uint64_t missing_bytes = 0;
  bool complete() const { return missing.empty(); }
};

/// Records with the same digest count once. errors  kIo: a layer cannot be looked into
Result<Coverage> coverage(const Store& store, std::span<const KernelRecord* const> records);

}  // namespace cubist
