#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace cubist {

/// N bytes of a format's fixed part, copied out. Fields are read by offsets that the compiler
/// checks, so that only taking the record can fail.
template <std::size_t N>
class FixedRecord {
 public:
  explicit FixedRecord(const std::uint8_t* bytes) { std::memcpy(bytes_, bytes, N); }

  /// The little-endian number at `Offset`.
  template <class T, std::size_t Offset>
  T get() const {
    static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
    static_assert(Offset + sizeof(T) <= N);
    T value;
    std::memcpy(&value, bytes_ + Offset, sizeof(T));
    return value;
  }

 private:
  std::uint8_t bytes_[N];
};

/// Reads little-endian numbers and slices out of bytes from outside; every access is bounds-checked
/// and a failed one is an empty optional. Holds no copy: the bytes must outlive it.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint64_t size() const { return bytes_.size(); }

  template <class T>
  std::optional<T> read(std::uint64_t offset) const {
    static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  template <std::size_t N>
  std::optional<FixedRecord<N>> record(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < N) return std::nullopt;
    return FixedRecord<N>(bytes_.data() + offset);
  }

  std::optional<std::span<const std::uint8_t>> slice(std::uint64_t offset,
                                                     std::uint64_t length) const {
    if (offset > bytes_.size() || bytes_.size() - offset < length) return std::nullopt;
    return bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }

  /// The text from `offset` up to a NUL inside the bytes; empty optional if there is none.
  std::optional<std::string_view> c_string(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return std::nullopt;
    const auto* start = reinterpret_cast<const char*>(bytes_.data() + offset);
    const void* end = std::memchr(start, 0, bytes_.size() - static_cast<std::size_t>(offset));
    if (end == nullptr) return std::nullopt;
    return std::string_view(start, static_cast<std::size_t>(static_cast<const char*>(end) - start));
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace cubist
