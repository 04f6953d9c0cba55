#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace cubist {

// Whoever can write into a store may have put a symbolic link where a file or folder of it
// belongs. Below the root of a store none is followed; on the way to the root they are, since the
// user chose that way.
//
// `depth`: how many of the path's last steps lie below the root: 3 for <root>/sha256/ab/x.cubin.

/// As open(2), with O_CLOEXEC, O_NOFOLLOW and O_NONBLOCK. On failure errno says why: ENOTDIR for a
/// link in place of a folder, ELOOP for one in place of the file.
UniqueFd open_in_store(const std::string& path, int depth, int flags, mode_t mode = 0);

/// The folder a file of a store lies in, as a descriptor for the calls that end in "at".
UniqueFd open_folder_of(const std::string& path, int depth);
/// The last step of a path.
const char* file_name_of(const std::string& path);

/// Names in a folder of a store but "." and "..", sorted; none if there is no such folder.
/// errors  kIo
Result<std::vector<std::string>> names_in_store_folder(const std::string& folder, int depth);

/// As unlink(2): 0, or -1 with errno.
int unlink_in_store(const std::string& path, int depth);

/// A regular file of a store. errors  kNotFound, kIo; kIntegrity above max_bytes
Result<std::vector<std::uint8_t>> read_in_store(const std::string& path, int depth,
                                                std::uint64_t max_bytes);

}  // namespace cubist
