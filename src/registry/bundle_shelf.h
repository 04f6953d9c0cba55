#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "registry/stored_bundle.h"

namespace cubist {

/// The bundles of a store's layers, opened when they are first asked for. Later calls look at the
/// folder's stat alone, and read it again when that changed. Safe from any thread.
class BundleShelf {
 public:
  struct Layer {
    std::vector<std::shared_ptr<const StoredBundle>> bundles;  ///< by name
    /// Files that have a bundle's name and are none, or cannot be opened; warned of.
    std::vector<std::pair<std::string, Error>> broken;
    std::vector<std::string> strangers;  ///< paths of what has no bundle's name
  };

  /// Those of <root>/bundles; none if there is no such folder.
  /// errors  kIo: the folder cannot be read
  Result<std::shared_ptr<const Layer>> layer(const std::string& root);

 private:
  struct Known;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Known>> layers_;  ///< by root
};

}  // namespace cubist
