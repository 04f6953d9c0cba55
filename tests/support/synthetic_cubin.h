#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/sm_arch.h"

namespace cubist::test {

/// A kernel of a synthetic cubin; its code does nothing.
struct SyntheticKernel {
  std::string name = "kernel";
  std::vector<std::uint32_t> params = {1280};          ///< sizes in bytes, one behind the other
  std::array<std::uint32_t, 3> threads = {512, 1, 1};  ///< all 0: no record
  std::uint32_t registers = 128;
  std::optional<std::uint32_t> smem;  ///< adds an entry NAME + "GetSmemSize" that says this
  std::optional<std::array<std::uint32_t, 3>> cluster;
  std::optional<bool> two_cta_mma;
  std::uint32_t static_smem = 0;
};

struct SyntheticCubin {
  SmArch arch{100, SmArch::Kind::kFamily};
  /// Which tools it looks like: 8 = from 12.8 on for sm_100, 7 = up to 12.9 for sm_90 and below.
  std::uint8_t abi_version = 8;
  bool release_13 = false;  ///< "specific" stands in .nv.compat instead of the flags
  bool tool_note = true;
  std::vector<SyntheticKernel> kernels = {{}};
};

/// A cubin that no GPU would run, laid out as real ones are, and where its parts lie.
struct CubinImage {
  std::vector<std::uint8_t> bytes;
  std::size_t section_headers = 0;  ///< offset of the table
  std::size_t segments = 0;         ///< offset of the table, of one segment
  std::vector<std::string> sections;

  /// Offsets in `bytes`: of a section's header, of its bytes; and its index.
  std::size_t index_of(const std::string& section) const;
  std::size_t header_of(const std::string& section) const;
  std::size_t bytes_of(const std::string& section) const;
  /// Offset of a kernel's symbol.
  std::size_t symbol_of(const std::string& kernel) const;
  /// Offset of the first record with this id in a .nv.info or .nv.compat section.
  std::size_t record_of(const std::string& section, std::uint8_t id) const;
};

CubinImage make_cubin(const SyntheticCubin& cubin = {});

}  // namespace cubist::test
