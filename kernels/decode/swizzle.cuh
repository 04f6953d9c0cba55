#pragma once

#include <cstdint>

namespace cubist_decode {

/// Where 16-byte chunk `chunk` of row `row` lies in a tile of kRowBytes-byte rows. Bytes.
///
/// The chunks of each 128 bytes are permuted by the row, so that the eight rows ldmatrix reads at
/// once lie in eight different bank groups:
///
///   rows of 128 bytes or more   chunk ^ row % 8
///   rows of 64 bytes            two rows share 128 bytes: chunk ^ row / 2 % 4
template <int kRowBytes>
__device__ __forceinline__ std::uint32_t swizzled(int row, int chunk) {
  static_assert(kRowBytes == 64 || kRowBytes % 128 == 0, "rows of 64, 128, 256, ... bytes");
  const int permuted = kRowBytes == 64 ? chunk ^ ((row >> 1) & 3) : chunk ^ (row & 7);
  return static_cast<std::uint32_t>(row * kRowBytes + permuted * 16);
}

}  // namespace cubist_decode
