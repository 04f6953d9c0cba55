#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cubist {

// The keys of a manifest's objects, in the order of ManifestReader's enums.
inline constexpr std::array<std::string_view, 7> kRootKeys = {
    "schema", "schema_version", "name", "description", "serial", "expires", "packs"};
inline constexpr std::array<std::string_view, 9> kPackKeys = {
    "name",         "version",    "license", "family", "revision",
    "param_layout", "min_driver", "sources", "kernels"};
inline constexpr std::array<std::string_view, 3> kSourceKeys = {"type", "location", "prefix"};
inline constexpr std::array<std::string_view, 6> kKernelKeys = {"name", "path", "sha256",
                                                                "size", "arch", "traits"};
/// In the order of Source::Kind.
inline constexpr std::array<std::string_view, 4> kSourceTypes = {"http", "folder", "zip", "pip"};

inline constexpr std::string_view kSchemaName = "cubist.manifest";
/// The first schema_version in which packs have min_driver.
inline constexpr std::uint32_t kVersionWithMinDriver = 2;

}  // namespace cubist
