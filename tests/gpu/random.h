#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace cubist::test {

/// splitmix64: the same numbers everywhere, unlike the distributions of <random>.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [first, last].
  int between(int first, int last) {
    const auto count = static_cast<std::uint64_t>(static_cast<std::int64_t>(last) - first + 1);
    return static_cast<int>(first + static_cast<std::int64_t>(bits() % count));
  }
  bool one_in(int n) { return between(1, n) == 1; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return *(values.begin() + between(0, static_cast<int>(values.size()) - 1));
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  float normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * uniform()));
  }

 private:
  std::uint64_t state_;
};

}  // namespace cubist::test
