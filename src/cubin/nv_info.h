#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace cubist {

/// One record of a .nv.info section.
struct NvInfoRecord {
  std::uint8_t format = 0;  ///< 1 no value, 2 one byte, 3 two bytes, 4 a payload
  std::uint8_t id = 0;
  std::uint16_t value = 0;                ///< formats 2 and 3
  std::span<const std::uint8_t> payload;  ///< format 4
};

/// Walks the records of a .nv.info or .nv.compat section. `what` names file and section in
/// messages.
class NvInfoReader {
 public:
  NvInfoReader(std::span<const std::uint8_t> bytes, std::string_view file, std::string_view section)
      : bytes_(bytes), file_(file), section_(section) {}

  /// The next record, an empty optional behind the last one.
  /// errors  kIntegrity: a record that runs out of the section, or of an unknown format
  Result<std::optional<NvInfoRecord>> next();

 private:
  std::span<const std::uint8_t> bytes_;
  std::string_view file_;
  std::string_view section_;
  std::size_t at_ = 0;
};

}  // namespace cubist
