#pragma once

#include <cstdint>
#include <vector>

#include "archive/random_access.h"
#include "base/result.h"

namespace cubist {

/// Where a zip's central directory is, and the end of the file that was read to find out.
struct ZipEnd {
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_size = 0;
  std::uint64_t num_entries = 0;

  std::uint64_t tail_offset = 0;  ///< of the first byte of `tail` in the file
  std::vector<std::uint8_t> tail;
};

/// Finds the end record in one read (a second one if a zip64 record lies before the last 64 KiB).
/// On success directory_offset + directory_size <= size, and at least 46 bytes are there per entry.
Result<ZipEnd> read_zip_end(RandomAccess& bytes);

}  // namespace cubist
