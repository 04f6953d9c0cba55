#pragma once

#include <string>

#include "base/result.h"
#include "manifest/manifest.h"
#include "model/verified_cubin.h"
#include "registry/store.h"

namespace cubist::runtime {

/// Gives the verified bytes of an artifact: from the store, else from its pack's sources (and then
/// into the store). Safe from any thread and any number of processes.
class CubinProvider {
 public:
  /// offline  no source is asked that may need the network
  CubinProvider(Store store, bool offline) : store_(std::move(store)), offline_(offline) {}

  const Store& store() const { return store_; }

  /// manifest  the one the pack belongs to
  /// errors    kOffline: missing here, and only the network has it; kNetwork, kIntegrity, kIo: from
  ///           the sources and the store
  Result<VerifiedCubin> get(const Manifest& manifest, const Pack& pack,
                            const KernelRecord& record) const;

 private:
  Store store_;
  bool offline_;
};

}  // namespace cubist::runtime
