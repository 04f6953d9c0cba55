#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cubist {

/// A SHA-256 digest: the identity of an artifact.
struct Sha256Digest {
  std::array<std::uint8_t, 32> bytes{};

  std::string hex() const;
  /// 64 hexadecimal digits of either case, nothing else.
  static std::optional<Sha256Digest> parse(std::string_view text);

  auto operator<=>(const Sha256Digest&) const = default;
};

/// Hashes a stream (OpenSSL). One object, one stream; not for use from two threads at once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::uint8_t> bytes);
  /// The digest of all that was given; the object must not be used afterwards.
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest sha256(std::span<const std::uint8_t> bytes);

}  // namespace cubist

template <>
struct std::hash<cubist::Sha256Digest> {
  std::size_t operator()(const cubist::Sha256Digest& digest) const noexcept {
    std::size_t value = 0;  // a digest is uniform already: its first bytes are a hash
    for (std::size_t i = 0; i < sizeof(value); ++i) value = value << 8 | digest.bytes[i];
    return value;
  }
};
