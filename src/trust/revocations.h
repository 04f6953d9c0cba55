#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist::trust {

/// A kernel that must not run any more.
struct Revocation {
  Sha256Digest sha256;
  std::string reason;                       ///< for people; no control characters
  std::optional<Sha256Digest> replacement;  ///< a kernel to take instead
};

/// One list of a publisher.
struct RevocationList {
  std::string file;
  std::string name;  ///< serials count by it; empty: the publisher's only list
  std::int64_t serial = 0;
  std::string expires;  ///< "2027-01-31"; empty: not said
  std::vector<Revocation> entries;
};

/// errors  kInvalidArgument with file, place and what is wrong
Result<RevocationList> parse_revocations(std::string_view text, std::string_view file_name);

/// Every kernel that some list revokes.
class RevokedKernels {
 public:
  /// A kernel that an earlier list has keeps that list's reason.
  void add(const RevocationList& list);

  bool empty() const { return kernels_.empty(); }
  std::size_t size() const { return kernels_.size(); }
  bool contains(const Sha256Digest& digest) const { return kernels_.contains(digest); }
  /// "revoked by 'LIST' (serial 4): REASON; use SHA256 instead"; nothing if it is not revoked.
  std::optional<std::string> why(const Sha256Digest& digest) const;
  /// errors  kUntrusted, with name and reason, if it is revoked
  Status check(const Sha256Digest& digest, std::string_view kernel_name) const;
  const std::unordered_map<Sha256Digest, std::string>& all() const { return kernels_; }

 private:
  std::unordered_map<Sha256Digest, std::string> kernels_;
};

}  // namespace cubist::trust
