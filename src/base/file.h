#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cubist {

/// A file descriptor that closes itself.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// "cannot open '/x/y': Permission denied" with code kIo (kNotFound for ENOENT).
Error errno_error(std::string_view what, const std::string& path, int error_number);

/// Opens a regular file for reading. Folders, devices, sockets and FIFOs are refused without
/// blocking.
Result<UniqueFd> open_regular_file(const std::string& path);

/// Size in bytes of an open file.
Result<std::uint64_t> file_size(const UniqueFd& fd, const std::string& path);

/// A text that is read whole has so many bytes of capacity to spare, for parsers that read in
/// blocks and would otherwise copy it.
inline constexpr std::size_t kRoomBehindText = 64;

/// The whole of a regular file; refused if it is larger than max_bytes.
Result<std::vector<std::uint8_t>> read_file(const std::string& path, std::uint64_t max_bytes);
Result<std::string> read_text_file(const std::string& path, std::uint64_t max_bytes);

/// Exactly out.size() bytes from `offset`; fewer is kIntegrity ("file ends at ...").
Status read_exactly_at(const UniqueFd& fd, std::uint64_t offset, std::span<std::uint8_t> out,
                       const std::string& path);

/// All of `bytes`, at the descriptor's position.
Status write_all(const UniqueFd& fd, std::span<const std::uint8_t> bytes, const std::string& path);

/// Replaces the file at `path`, or where a link there points, keeping its mode: whole, or after a
/// failure (kIo) not at all, with nothing left behind. A device or a FIFO is written into instead.
Status write_file_atomically(const std::string& path, std::span<const std::uint8_t> bytes);
Status write_file_atomically(const std::string& path, std::string_view text);

}  // namespace cubist
