#pragma once

#include <optional>
#include <string>

#include "registry/http_range_access.h"
#include "registry/store.h"

namespace cubist {

/// Keeps the end of a remote wheel (its zip directory) beside the entries of a store, so that the
/// next process needs one request for one kernel. Only a hint: whatever is read with its help is
/// verified as if it were not there, and a file that is damaged or cannot be written is passed
/// over.
class DirectoryCache {
 public:
  /// key  names the version of the file as well as possible: its sha256 from an index, else its URL
  DirectoryCache(const Store& store, std::string key) : store_(store), key_(std::move(key)) {}

  std::optional<HttpRangeAccess::Known> load() const;
  /// Everything of `access` from `offset` to its end, and at least what opening reads.
  void save(HttpRangeAccess& access, std::uint64_t offset) const;
  void remove() const;

 private:
  std::string key_digest() const;
  std::string file_name() const;
  Status write(const std::string& text) const;

  const Store& store_;
  std::string key_;
};

}  // namespace cubist
