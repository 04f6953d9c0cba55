#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sha256.h"
#include "trust/signature.h"

namespace cubist::trust {

/// What a user of a store has seen signed: the highest serials, and the keys that were retired.
struct Seen {
  std::map<std::string, std::int64_t> serials;  ///< by kind and name: "manifest NAME"
  /// SHA-256 of what had that serial, by the same key; not there for what was noted without.
  std::map<std::string, Sha256Digest> hashes;
  /// Names of revocation lists, by the SHA-256 of the absolute path that was configured.
  std::map<Sha256Digest, std::string> lists;
  std::set<PublicKey> retired;
  /// SHA-256 of the key statements that were applied: the key that signed one may be retired since.
  std::set<Sha256Digest> statements;

  std::int64_t serial_of(const std::string& what) const;
  /// The hash that goes with it; nothing if none is known.
  std::optional<Sha256Digest> hash_of(const std::string& what) const;
  /// Takes in whatever is higher or new in `other`; whether anything was.
  bool merge(const Seen& other);
};

/// Seen, kept in one file a user, <folder>/seen-<uid>.json, mode 0600. Reading writes nothing.
class SeenState {
 public:
  /// An empty folder keeps nothing.
  explicit SeenState(std::string folder);
  /// What another user noted there; of use only for reading, and taken from root alone.
  SeenState(std::string folder, uid_t user);

  std::string file() const { return folder_ + "/" + file_name_; }

  /// What is noted there; nothing where there is no file.
  /// errors  kUntrusted: the file is a link, no file, or somebody else's; kIntegrity: it is broken;
  ///         kIo. Each says what to do.
  Result<Seen> load() const;

  /// Notes what is new in `seen`, beside what others note meanwhile. Atomic: the file is replaced
  /// whole, under a lock. errors  as load(); kIo: the folder cannot be written
  Status note(const Seen& seen) const;

 private:
  Result<Seen> load_from(int folder) const;

  std::string folder_;
  std::string file_name_;
};

/// errors  kInvalidArgument, with `file_name` and place
Result<Seen> parse_seen(std::string_view text, std::string_view file_name);
std::string write_seen(const Seen& seen);

}  // namespace cubist::trust
