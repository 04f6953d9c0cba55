#pragma once

#include <string_view>

#include "base/result.h"
#include "manifest/manifest.h"

namespace cubist {

/// Bounds of a manifest's texts and numbers; manifests/FORMAT.md states them.
inline constexpr std::uint64_t kMaxKernelBytes = 1ULL << 30;
inline constexpr std::size_t kMaxNameLength = 512;
inline constexpr std::size_t kMaxPathLength = 1024;
inline constexpr std::size_t kMaxLocationLength = 4096;
inline constexpr std::size_t kMaxDescriptionLength = 65536;
/// Records with one digest are compared pair by pair: keeps that from growing quadratic.
/// Published: 3.
inline constexpr std::size_t kMaxRecordsPerDigest = 256;

/// The rules a manifest must keep whatever made it: safe names and paths, sizes, traits that can be
/// launched, family, revision and parameter layout that belong together, no artifact twice, no path
/// for two artifacts.
///
/// file_name  put in front of the message; may be empty
/// errors     kManifestInvalid with the JSON pointer of the first place that breaks a rule
Status validate_manifest(const Manifest& manifest, std::string_view file_name = {});

/// Whether the file of a kernel may be called so: relative, "/"-separated, no empty, "." or ".."
/// part, no backslash and no control character. Empty result if it may, else the reason.
std::string_view path_problem(std::string_view path);

}  // namespace cubist
