#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace cubist {
namespace {

// Odd, so that each step maps lanes one to one and no single changed word can go unseen.
constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ULL;
constexpr std::size_t kLanes = 8;

std::uint64_t step(std::uint64_t lane, std::uint64_t word) {
  lane = (lane ^ word) * kFactor;
  return lane ^ lane >> 32;  // a product's high bits depend on all bits; without it, on too few
}

}  // namespace

std::uint64_t checksum64(std::span<const std::uint8_t> bytes) {
  static_assert(std::endian::native == std::endian::little);
  // Lanes of their own: a multiplication need not wait for the one before.
  std::array<std::uint64_t, kLanes> lanes = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::uint64_t, kLanes> words{};
  const std::uint64_t size = bytes.size();
  while (bytes.size() >= sizeof(words)) {
    std::memcpy(words.data(), bytes.data(), sizeof(words));
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = step(lanes[i], words[i]);
    bytes = bytes.subspan(sizeof(words));
  }
  words = {};
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  std::uint64_t sum = size;
  for (std::size_t i = 0; i < kLanes; ++i) sum = step(sum, step(lanes[i], words[i]));
  return sum ^ sum >> 29;
}

}  // namespace cubist
