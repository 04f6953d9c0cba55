#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "base/sha256.h"
#include "oci/progress.h"
#include "registry/http_request.h"

namespace cubist::oci {

/// A bundle on its way in: a file of its full size with holes where nothing has come yet. It stays
/// when its writer is stopped or killed, and the next one goes on with what is there. Nothing says
/// how far that is but the file itself: what lies before a hole is a hint, and every piece is
/// hashed as a whole before it counts. Pieces may be written from several threads at once.
class StagedBundle {
 public:
  /// Opens or makes the file; a file of another size begins anew. Waits while another process has
  /// it.
  ///
  /// depth   how many of the path's last steps lie below a folder that others may write, where no
  ///         link is followed (registry/store_file.h)
  /// errors  kIo; kInterrupted
  static Result<std::shared_ptr<StagedBundle>> open(const std::string& path,
                                                    std::uint64_t file_bytes,
                                                    const std::atomic<bool>* cancel, int depth = 1);
  /// A whole one that is there, to be looked at; nothing if there is none of that size.
  static std::shared_ptr<StagedBundle> open_finished(const std::string& path, int depth,
                                                     std::uint64_t file_bytes);

  const std::string& path() const { return path_; }

  /// How many of the `length` bytes from `offset` on seem to be there, from the first on.
  std::uint64_t filled(std::uint64_t offset, std::uint64_t length) const;
  bool holds_anything() const;
  Status hash(std::uint64_t offset, std::uint64_t length, Sha256& hasher) const;
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) const {
    return read_exactly_at(fd_, offset, out, path_);
  }
  Status write(std::uint64_t offset, std::span<const std::uint8_t> bytes);

  /// Makes what is there durable.
  Status sync();
  /// Takes everybody's permission to write it.
  Status make_read_only();
  /// Makes it durable and gives it its name, in place of what has that name. depth  as for open()
  Status publish(const std::string& target, int depth = 1);
  void remove();

 private:
  StagedBundle(std::string path, int depth, UniqueFd fd)
      : path_(std::move(path)), depth_(depth), fd_(std::move(fd)) {}

  std::string path_;
  int depth_;
  UniqueFd fd_;
};

/// Writes one piece of it and hashes what it writes.
class PieceSink : public HttpSink {
 public:
  /// have  bytes of the piece that are there and count; begin() must be called first
  PieceSink(StagedBundle& file, std::uint64_t offset, std::uint64_t have, Progress& progress)
      : file_(file), offset_(offset), have_(have), progress_(progress) {}

  /// Hashes the bytes that are there.
  Status begin();
  Status write(std::span<const std::uint8_t> bytes) override;
  Status restart() override { return begin(); }
  /// Of the whole piece, once.
  Sha256Digest digest() { return hasher_.finish(); }

 private:
  StagedBundle& file_;
  std::uint64_t offset_;
  std::uint64_t have_;
  Progress& progress_;
  std::uint64_t at_ = 0;
  Sha256 hasher_;
};

}  // namespace cubist::oci
