#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "manifest/manifest.h"

namespace cubist {

/// A manifest file larger than this is refused unread. Unit: bytes.
inline constexpr std::uint64_t kMaxManifestBytes = 256ULL << 20;

/// Reads a manifest (manifests/FORMAT.md), all or nothing: what comes back has passed
/// validate_manifest. Bytes from anywhere: nothing in them can do worse than fail.
///
/// text       not copied if its string has kRoomBehindText bytes to spare
/// file_name  what messages call it
/// errors     kManifestInvalid: "m.json: /packs/0/kernels/17/sha256: what is wrong", with a JSON
///            pointer to the place, or line and column where the text is no JSON at all
Result<Manifest> parse_manifest(const std::string& text, std::string_view file_name);

/// The same from a file; Manifest::folder says where it lies.
/// errors  also kNotFound and kIo
Result<Manifest> load_manifest(const std::string& path);

}  // namespace cubist
