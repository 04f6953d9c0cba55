#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist {

// Numbers of the ELF format that more than one reader needs (System V ABI; CUDA's own types).
inline constexpr std::uint32_t kElfNoBits = 8;  // a section without bytes in the file
inline constexpr std::uint32_t kElfNote = 7;
inline constexpr std::uint32_t kElfCudaInfo = 0x70000000;  // .nv.info, .nv.info.NAME

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::span<const std::uint8_t> bytes;  ///< empty for kElfNoBits
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t type = 0;  ///< 2 = function
  std::uint8_t other = 0;
  std::uint16_t section = 0;  ///< index of a section, or 0xff00 and above: none
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};

/// The sections and symbols of a cubin's ELF container, checked; what they mean is cubin_file's
/// work. Views point into the bytes that were parsed.
struct ElfFile {
  std::uint8_t os_abi = 0;
  std::uint8_t abi_version = 0;
  std::uint32_t version = 0;
  std::uint32_t flags = 0;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;

  /// errors  kIntegrity, naming `name` and the rule: no 64-bit little-endian CUDA executable;
  /// tables,
  ///         sections, segments, symbols or names that run out of the file; sections that overlap
  static Result<ElfFile> parse(std::span<const std::uint8_t> bytes, std::string_view name);
};

/// "'x.cubin' is no usable cubin: ..." with code kIntegrity.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> broken_cubin(std::string_view name,
                                                 fmt::format_string<Args...> text, Args&&... args) {
  return fail(StatusCode::kIntegrity, "'{}' is no usable cubin: {}", name,
              fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace cubist
