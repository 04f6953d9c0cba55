#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/sm_arch.h"

namespace cubist {

/// One parameter of a kernel. Units: bytes, from the start of the parameter block.
struct CubinParam {
  std::uint16_t ordinal = 0;
  std::uint16_t offset = 0;
  std::uint32_t size = 0;

  bool operator==(const CubinParam&) const = default;
};

/// A kernel of a cubin, by what the file says of it. An empty optional: the file does not say.
struct CubinEntry {
  std::string name;  ///< as cuModuleGetFunction wants it; printable ASCII
  std::uint64_t code_bytes = 0;
  std::uint32_t param_bytes = 0;                            ///< size of the whole parameter block
  std::vector<CubinParam> params;                           ///< by ordinal; those the file lists
  std::optional<std::array<std::uint32_t, 3>> max_threads;  ///< launch bound, x y z
  std::optional<std::uint32_t> registers;                   ///< per thread
  std::optional<std::array<std::uint32_t, 3>> cluster;      ///< fixed at compile time, x y z
  std::optional<bool> two_cta_mma;  ///< tensor MMAs over pairs of CTAs; empty: no such MMA at all
  std::uint64_t static_smem = 0;    ///< bytes of the kernel's own, without what the system reserves
  /// Bytes of dynamic shared memory the kernel wants, if the file has an entry NAME + "GetSmemSize"
  /// whose code is known to do nothing but hand out a constant.
  std::optional<std::uint32_t> dynamic_smem;
  /// This is such an entry itself: no kernel to be launched.
  bool is_smem_size_entry = false;

  /// Product of max_threads; 0 if the file does not say.
  std::uint32_t threads() const {
    return max_threads ? (*max_threads)[0] * (*max_threads)[1] * (*max_threads)[2] : 0;
  }
};

/// What a cubin says of itself: read from its ELF container, without a GPU or any CUDA library.
struct CubinFile {
  SmArch arch;
  /// False if the file does not tell whether it is for `arch` alone or for its family too (sm_100
  /// or sm_100f; arch.kind is then kPortable). Specific ones (sm_100a) are always told apart.
  bool arch_is_exact = true;
  std::string tool_release;  ///< of the assembler: "12.9"; empty if the file does not say
  std::uint64_t size_bytes = 0;
  std::vector<CubinEntry> entries;  ///< in the file's order; kernels that are not exported included

  const CubinEntry* find(std::string_view entry_name) const;
  /// The entries that are kernels to be launched: all but the GetSmemSize ones.
  std::vector<const CubinEntry*> kernels() const;
};

/// Reads a cubin. Pure and safe from any thread; `name` is what messages call the file.
/// errors  kIntegrity: anything that breaks the format's rules, with the rule; nothing is guessed
Result<CubinFile> parse_cubin(std::span<const std::uint8_t> bytes, std::string_view name);

/// "sm_100f", "sm_100a", or "sm_100|sm_100f" where the file does not tell the two apart.
std::string arch_text(const CubinFile& cubin);

}  // namespace cubist
