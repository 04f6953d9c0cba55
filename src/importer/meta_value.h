#pragma once

#include <cstdint>
#include <optional>

#include "importer/meta_table.h"
#include "model/dtype.h"
#include "model/sm_arch.h"

namespace cubist {

// Values of the published metadata as they are spelt; an empty optional for any other spelling.

/// Decimal or hexadecimal, with or without the suffixes u and l.
std::optional<std::uint64_t> parse_meta_number(const MetaValue& value);
/// true, false, 1 or 0.
std::optional<bool> parse_meta_flag(const MetaValue& value);
/// A number up to `max`, or true and false for 1 and 0: columns changed from bool to int.
std::optional<std::uint64_t> parse_meta_count(const MetaValue& value, std::uint64_t max);
/// DATA_TYPE_E4M3
std::optional<Dtype> parse_meta_dtype(const MetaValue& value);
/// kSM_100 is a cubin for 10.0 alone (sm_100a), kSM_100f one for its family. As numbers: 100, and
/// 10100 for the family.
std::optional<SmArch> parse_meta_arch(const MetaValue& value);

}  // namespace cubist
