#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/sha256.h"
#include "cubin/cubin_file.h"

namespace cubist::tools {

/// What `cubist inspect` prints of one cubin. `file` is what the user called it.
std::string inspect_text(const std::string& file, const Sha256Digest& sha256,
                         const CubinFile& cubin);
nlohmann::ordered_json inspect_json(const std::string& file, const Sha256Digest& sha256,
                                    const CubinFile& cubin);

}  // namespace cubist::tools
