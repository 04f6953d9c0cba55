#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace cubist::tools {

/// A file that is written bit by bit and has its name only once it is whole; "-" is standard
/// output, a device or FIFO is written into. Without finish(), nothing is left behind.
class OutputFile {
 public:
  /// errors  kInvalidArgument: standard output is a terminal; kIo: no file can be made there
  static Result<OutputFile> create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status write(std::span<const std::uint8_t> bytes) { return write_all(fd_, bytes, path_); }
  /// Makes the bytes durable and gives the file its name.
  Status finish();

 private:
  OutputFile(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

  std::string path_;
  std::string temporary_;  ///< empty: there is none, or not any more
  UniqueFd fd_;
};

}  // namespace cubist::tools
