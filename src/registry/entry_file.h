#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace cubist {

/// An entry opened for reading: a regular file, its size as it was at open.
struct EntryFile {
  UniqueFd fd;
  std::uint64_t size_bytes = 0;
};

/// Opens a store entry; nullopt if there is none. Touches nothing else. A stale NFS handle is
/// opened anew by path, a few times. errors  kIntegrity: not a regular file. kIo: permission, EIO
/// and the like
Result<std::optional<EntryFile>> open_entry(const std::string& path);

/// Exactly out.size() bytes from `offset`.
/// errors  kIntegrity: the file ends before. kIo: with what to do
Status read_entry_at(const EntryFile& entry, const std::string& path, std::uint64_t offset,
                     std::span<std::uint8_t> out);

/// A failed look at a store as an Error with the next step.
Error store_read_error(std::string_view what, const std::string& path, int error_number);

}  // namespace cubist
