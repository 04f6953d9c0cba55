#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cubist::test {

/// Appends little-endian numbers and texts; what a test builds a file format with.
class ByteWriter {
 public:
  template <class T>
  ByteWriter& put(std::type_identity_t<T> value) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
    return *this;
  }
  ByteWriter& u8(std::uint8_t value) { return put<std::uint8_t>(value); }
  ByteWriter& u16(std::uint16_t value) { return put<std::uint16_t>(value); }
  ByteWriter& u32(std::uint32_t value) { return put<std::uint32_t>(value); }
  ByteWriter& u64(std::uint64_t value) { return put<std::uint64_t>(value); }
  ByteWriter& text(std::string_view value) {
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  ByteWriter& append(const std::vector<std::uint8_t>& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  ByteWriter& align(std::size_t to) {
    bytes.resize((bytes.size() + to - 1) / to * to);
    return *this;
  }
  std::size_t size() const { return bytes.size(); }

  std::vector<std::uint8_t> bytes;
};

/// Overwrites the little-endian number at `offset`: how a test makes a liar of a good file.
template <class T>
void patch(std::vector<std::uint8_t>& bytes, std::size_t offset, std::type_identity_t<T> value) {
  std::memcpy(&bytes.at(offset + sizeof(T) - 1) - (sizeof(T) - 1), &value, sizeof(T));
}

}  // namespace cubist::test
