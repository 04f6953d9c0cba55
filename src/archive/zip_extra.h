#pragma once

#include <cstdint>
#include <span>

namespace cubist {

/// Sizes and offset of a header whose 32-bit fields may say "see the zip64 extra field".
struct ZipWideFields {
  std::uint64_t size = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t header_offset = 0;  ///< not in local headers: give 0
};

/// Replaces the fields that are all ones by the values of the zip64 record among the extra fields
/// `extra`. False if a record runs out of `extra`, there are two zip64 records, or a value is
/// missing.
bool widen_zip_fields(std::span<const std::uint8_t> extra, ZipWideFields& fields);

}  // namespace cubist
