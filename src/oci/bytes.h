#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cubist::oci {

/// The text as bytes; it must outlive them.
inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The bytes as text; they must outlive it.
inline std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace cubist::oci
