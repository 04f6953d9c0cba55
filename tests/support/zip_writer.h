#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cubist::test {

/// A file to put into a zip.
struct ZipInput {
  std::string name;
  std::string data;
  bool deflate = false;
  bool descriptor = false;  ///< sizes and CRC behind the data, as writers to a pipe do
  bool zip64 = false;       ///< sizes and offset in zip64 extra fields
};

struct ZipOptions {
  bool zip64_end = false;
  std::string comment;
};

/// A zip and where its records lie, for tests that change some of its bytes.
struct ZipImage {
  std::vector<std::uint8_t> bytes;
  std::vector<std::size_t> locals;   ///< offsets of the local headers
  std::vector<std::size_t> entries;  ///< of the directory's entries
  std::size_t zip64_end = 0;
  std::size_t zip64_locator = 0;
  std::size_t end = 0;
};

ZipImage make_zip(const std::vector<ZipInput>& files, const ZipOptions& options = {});

/// A raw deflate stream.
std::string deflated(const std::string& data);

}  // namespace cubist::test
