#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "archive/zip.h"
#include "base/result.h"
#include "bundle/description.h"
#include "model/verified_cubin.h"

namespace cubist::bundle {

/// A kernel out of its entry alone, wherever those bytes are from: no bundle is needed around them.
///
/// entry   the local header and the packed bytes, and nothing else: the bytes
///         [header_offset, limit_offset) of the kernel's member
/// origin  what messages call the place
/// errors  kIntegrity: not this kernel's entry; one that claims or makes another size; other bytes
///         than `kernel.sha256`
Result<VerifiedCubin> unpack_entry(std::span<const std::uint8_t> entry, const Kernel& kernel,
                                   const std::string& origin);

/// A member out of its entry, which must begin with exactly the header that bundles have for it.
/// out: of as many bytes as the member claims
Status unpack_member(std::span<const std::uint8_t> entry, const ZipMember& member,
                     std::span<std::uint8_t> out, const std::string& origin);

/// Size of a member's entry as bundles have it: header, name, packed bytes.
std::uint64_t entry_bytes(const ZipMember& member);

}  // namespace cubist::bundle
