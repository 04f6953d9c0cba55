#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "archive/zip.h"
#include "base/result.h"
#include "bundle/description.h"
#include "model/verified_cubin.h"

namespace cubist::bundle {

/// A bundle that was opened: its directory and bundle.json are checked, its other members are when
/// they are read. Const functions are safe from several threads at once if the RandomAccess is.
class Bundle {
 public:
  /// Reads the directory and bundle.json; what is at hand then is that the file holds exactly the
  /// members that bundle.json names, in order and with its sizes, and no other byte.
  ///
  /// errors  kIntegrity: names the member, or the bytes. Whatever reading the file fails with
  static Result<Bundle> open(std::shared_ptr<RandomAccess> file);

  /// What messages call the file.
  const std::string& file_name() const { return file_->name(); }
  std::uint64_t file_bytes() const { return file_->size(); }
  RandomAccess& file() const { return *file_; }
  const Description& description() const { return description_; }
  /// SHA-256 of bundle.json.
  const Sha256Digest& identity() const { return identity_; }

  /// All members in the file's order; the last description().kernels.size() ones are the kernels,
  /// in their order. A member's entry (entry.h) is the bytes [header_offset, limit_offset).
  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember& kernel_member(std::size_t kernel) const {
    return members_[members_.size() - description_.kernels.size() + kernel];
  }
  /// Where the first kernel's entry begins: the bytes before it are all that is no kernel.
  std::uint64_t kernels_offset() const { return kernel_member(0).header_offset; }
  /// Where the last kernel's entry ends: the zip directory begins there, and ends with the file.
  std::uint64_t directory_offset() const { return members_.back().limit_offset; }

  /// errors  kIntegrity: not the kernel that bundle.json names
  Result<VerifiedCubin> read_kernel(std::size_t kernel) const;
  /// The same without the SHA-256, for who hashes the bytes anyway: unpacked to the size and CRC-32
  /// that the file claims, and no more believed than that.
  Result<std::vector<std::uint8_t>> unpack_kernel(std::size_t kernel) const;
  /// A manifest, signature, licence or notice. errors  kIntegrity: not the bytes that bundle.json
  /// names
  Result<std::string> read_part(const Part& part) const;
  /// read_part() in two steps, for who has something else to do while a long text is hashed. What
  /// unpack_part() gives has the size and CRC-32 that the file claims, and counts for nothing
  /// before check_part() found it to be the part.
  Result<std::string> unpack_part(const Part& part) const;
  Status check_part(const Part& part, const std::string& text) const;

 private:
  Bundle(std::shared_ptr<RandomAccess> file, std::vector<ZipMember> members,
         Description description, const Sha256Digest& identity)
      : file_(std::move(file)),
        members_(std::move(members)),
        description_(std::move(description)),
        identity_(identity) {}

  std::shared_ptr<RandomAccess> file_;
  std::vector<ZipMember> members_;
  Description description_;
  Sha256Digest identity_;
};

}  // namespace cubist::bundle
