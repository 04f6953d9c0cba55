#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "registry/store_layout.h"

namespace cubist {

/// An entry opened for reading: a regular file, its size as it was at open.
struct EntryFile {
  UniqueFd fd;
  std::uint64_t size_bytes = 0;
};

/// Opens a store entry; nullopt if there is none. Touches nothing else. A stale NFS handle is
/// opened anew by path, a few times. errors  kIntegrity: not a regular file. kIo: permission, EIO
/// and the like
///
/// depth  as in store_file.h; of a bundle's file: kStoreFileDepth
Result<std::optional<EntryFile>> open_entry(const std::string& path, int depth = kEntryDepth);

/// A shared lock is what tells collect_garbage() that a file is being used. It is dropped with
/// the descriptor, and where it cannot be had (NFS without a lock service, a collector at work) the
/// open descriptor alone keeps the bytes.
void mark_in_use(const EntryFile& file);

/// Exactly out.size() bytes from `offset`.
/// errors  kIntegrity: the file ends before. kIo: with what to do
Status read_entry_at(const EntryFile& entry, const std::string& path, std::uint64_t offset,
                     std::span<std::uint8_t> out);

/// A failed look at a store as an Error with the next step.
Error store_read_error(std::string_view what, const std::string& path, int error_number);

}  // namespace cubist
