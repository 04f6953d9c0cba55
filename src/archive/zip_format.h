#pragma once

#include <cstdint>

namespace cubist {

// Numbers of the zip format that more than one of its readers needs (PKWARE APPNOTE 4.3, 4.4).

inline constexpr std::uint32_t kZipLocalSignature = 0x04034b50;      // "PK\3\4"
inline constexpr std::uint32_t kZipEntrySignature = 0x02014b50;      // "PK\1\2"
inline constexpr std::uint32_t kZipEndSignature = 0x06054b50;        // "PK\5\6"
inline constexpr std::uint32_t kZip64EndSignature = 0x06064b50;      // "PK\6\6"
inline constexpr std::uint32_t kZip64LocatorSignature = 0x07064b50;  // "PK\6\7"

inline constexpr std::uint64_t kZipLocalBytes = 30;  // without name and extra fields
inline constexpr std::uint64_t kZipEntryBytes = 46;

inline constexpr std::uint16_t kZipFlagEncrypted = 1u << 0;
inline constexpr std::uint16_t kZipFlagDescriptor = 1u << 3;  // sizes and CRC follow the data
inline constexpr std::uint16_t kZipFlagPatch = 1u << 5;
inline constexpr std::uint16_t kZipFlagStrongEncryption = 1u << 6;
inline constexpr std::uint16_t kZipFlagMasked = 1u << 13;  // local header without real values

inline constexpr std::uint16_t kZipStored = 0;
inline constexpr std::uint16_t kZipDeflated = 8;

inline constexpr std::uint16_t kZip64Extra = 0x0001;
inline constexpr std::uint32_t kZip64Marker = 0xffffffff;  // the value is in the zip64 extra field

}  // namespace cubist
