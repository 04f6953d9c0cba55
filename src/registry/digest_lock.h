#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "base/sha256.h"

namespace cubist {

/// One lock per digest over all processes that share a store, without a file per lock: byte N of
/// <root>/lock stands for the digests that map to N. The file is never removed, so a name always
/// means one inode. The kernel drops the locks of a process that dies. Locks of one object do not
/// exclude each other; every run makes its own. One thread at a time.
class DigestLocks {
 public:
  explicit DigestLocks(const std::string& store_root);

  enum class Outcome : std::uint8_t {
    kTaken,        ///< ours until release() or the object's end
    kBusy,         ///< somebody else has it
    kUnavailable,  ///< locks do not work here (file system, permission); said once in the log
  };
  Outcome try_take(const Sha256Digest& digest);
  void release(const Sha256Digest& digest);

 private:
  std::string path_;
  UniqueFd fd_;
  bool opened_ = false;
  bool warned_ = false;
};

}  // namespace cubist
