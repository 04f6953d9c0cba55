#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "archive/zip.h"
#include "base/result.h"

namespace cubist::bundle {

/// Whether the file is, byte for byte but for what its members hold, the zip that ZipWriter makes
/// of them: members one behind the other from byte 0 on, a directory of exactly their entries, and
/// no byte behind it. So there is no room for anything that is not a member, and no link, device,
/// folder, comment or time stamp.
///
/// members  of ZipArchive::open, which has checked names, duplicates, overlaps and sizes
/// errors   kIntegrity: names the member, or the bytes that belong to none
Status check_form(RandomAccess& file, const std::vector<ZipMember>& members);

}  // namespace cubist::bundle
