#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "model/kernel_record.h"

namespace cubist {

/// dtype_k and dtype_v at once.
struct BothKv {};

/// Where a trait lives. A number's range stands beside it in the table.
using TraitMember =
    std::variant<bool KernelTraits::*, std::uint8_t KernelTraits::*, std::uint16_t KernelTraits::*,
                 std::uint32_t KernelTraits::*, Dtype KernelTraits::*, QkvLayout KernelTraits::*,
                 MaskType KernelTraits::*, KernelType KernelTraits::*,
                 TileScheduler KernelTraits::*, MultiCtasKvMode KernelTraits::*,
                 SparseType KernelTraits::*, BothKv>;

/// One key of a kernel's "traits" object, for the reader and the writer alike.
struct TraitField {
  std::string_view key;
  TraitMember member;
  std::uint32_t min = 0;  ///< numbers only, inclusive
  std::uint32_t max = 0;
};

/// A set of keys: bit i stands for field i.
using TraitSet = std::uint64_t;

/// In the order the writer uses.
inline constexpr std::size_t kNumTraitFields = 39;
const std::array<TraitField, kNumTraitFields>& trait_fields();

/// Whether both dtype_kv and what it stands for are in the set.
bool says_kv_twice(TraitSet seen);

/// Fills what the set of keys `seen` leaves out: plain defaults are in KernelTraits already; these
/// are the ones that follow another field (head_dim_vo = head_dim_qk, ...).
void apply_trait_defaults(KernelTraits& traits, TraitSet seen);

/// First key that kernels of this family need and that is not in `seen`; empty if none.
std::string_view missing_trait(TraitSet seen, KernelFamily family);

/// Whether a key has no default: kernels of this family always have it.
bool is_needed_trait(std::string_view key, KernelFamily family);

}  // namespace cubist
