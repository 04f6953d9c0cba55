#pragma once

#include <cstdint>

#include "stream_ptx.cuh"
#include "variant.h"

/// Warpgroup MMA with 64 rows and few columns, sums in fp32: one function a form. `c`: what a
/// thread has of the 64 x kColumns sums, [kColumns / 8] of {row g: columns 2t, 2t + 1, row g + 8:
/// the same} (g = lane / 4, t = lane % 4, rows of the warp's 16).
///
///   keys      c = or += a b^T   a 64 x 16, b kColumns x 16, both with rows along K
///   values    c += a^T b        a 16 x 64, b 16 x kColumns, both with columns along K
///
/// a by descriptor or, as `registers`, already as the MMA's rows, in registers.
namespace cubist_decode {

#define CUBIST_LIST_4 "%0, %1, %2, %3"
#define CUBIST_LIST_8 CUBIST_LIST_4 ", %4, %5, %6, %7"
#define CUBIST_LIST_12 CUBIST_LIST_8 ", %8, %9, %10, %11"
#define CUBIST_LIST_16 CUBIST_LIST_12 ", %12, %13, %14, %15"
#define CUBIST_LIST_24 CUBIST_LIST_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define CUBIST_LIST_48 \
  CUBIST_LIST_32       \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define CUBIST_SUMS_4 "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#define CUBIST_SUMS_8 CUBIST_ACCUMULATORS_8(c, 0)
#define CUBIST_SUMS_12 CUBIST_SUMS_8, "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11])
#define CUBIST_SUMS_16 CUBIST_SUMS_8, CUBIST_ACCUMULATORS_8(c, 8)
#define CUBIST_SUMS_24 CUBIST_SUMS_16, CUBIST_ACCUMULATORS_8(c, 16)
#define CUBIST_SUMS_32 CUBIST_ACCUMULATORS_32(c, 0)
#define CUBIST_SUMS_48 CUBIST_SUMS_32, CUBIST_ACCUMULATORS_8(c, 32), CUBIST_ACCUMULATORS_8(c, 40)

template <int kColumns>
struct TransposedMma;

// m, n: number of sums a thread has, and of columns; p0 .. p5: the operands behind the sums.
#define CUBIST_WGMMA(n, type) "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {"
#define CUBIST_TRANSPOSED_KEYS(n, m, type, p0, p1, p2)                                   \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " p2 ", 0;\n" CUBIST_WGMMA(n, type) \
                   CUBIST_LIST_##m "}, " p0 ", " p1 ", add, 1, 1, 0, 0;\n}"              \
               : CUBIST_SUMS_##m                                                         \
               : "l"(a), "l"(b), "r"(add))
#define CUBIST_TRANSPOSED_VALUES(n, m, type, p0, p1)                                     \
  asm volatile(CUBIST_WGMMA(n, type) CUBIST_LIST_##m "}, " p0 ", " p1 ", 1, 1, 1, 1, 1;" \
               : CUBIST_SUMS_##m                                                         \
               : "l"(a), "l"(b))
#define CUBIST_TRANSPOSED_MMA(n, m, p0, p1, p2, p3, p4, p5)                                      \
  template <>                                                                                    \
  struct TransposedMma<n> {                                                                      \
    template <Type kType>                                                                        \
    static __device__ __forceinline__ void keys(float (&c)[m], std::uint64_t a, std::uint64_t b, \
                                                int add) {                                       \
      if constexpr (kType == Type::kBf16) {                                                      \
        CUBIST_TRANSPOSED_KEYS(n, m, "bf16", p0, p1, p2);                                        \
      } else {                                                                                   \
        CUBIST_TRANSPOSED_KEYS(n, m, "f16", p0, p1, p2);                                         \
      }                                                                                          \
    }                                                                                            \
    template <Type kType>                                                                        \
    static __device__ __forceinline__ void values(float (&c)[m], std::uint64_t a,                \
                                                  std::uint64_t b) {                             \
      if constexpr (kType == Type::kBf16) {                                                      \
        CUBIST_TRANSPOSED_VALUES(n, m, "bf16", p0, p1);                                          \
      } else {                                                                                   \
        CUBIST_TRANSPOSED_VALUES(n, m, "f16", p0, p1);                                           \
      }                                                                                          \
    }                                                                                            \
    static __device__ __forceinline__ void keys_of_registers(float (&c)[m],                      \
                                                             const std::uint32_t (&a)[4],        \
                                                             std::uint64_t b, int add) {         \
      asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " p5 ", 0;\n" CUBIST_WGMMA(n, "f16")    \
                       CUBIST_LIST_##m "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4                \
                                       ", add, 1, 1, 0;\n}"                                      \
                   : CUBIST_SUMS_##m                                                             \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }                                                                                            \
    static __device__ __forceinline__ void values_of_registers(float (&c)[m],                    \
                                                               const std::uint32_t (&a)[4],      \
                                                               std::uint64_t b) {                \
      asm volatile(CUBIST_WGMMA(n, "f16") CUBIST_LIST_##m "}, {" p0 ", " p1 ", " p2 ", " p3      \
                                                          "}, " p4 ", 1, 1, 1, 1;"               \
                   : CUBIST_SUMS_##m                                                             \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                        \
    }                                                                                            \
  };

CUBIST_TRANSPOSED_MMA(8, 4, "%4", "%5", "%6", "%7", "%8", "%9")
CUBIST_TRANSPOSED_MMA(16, 8, "%8", "%9", "%10", "%11", "%12", "%13")
CUBIST_TRANSPOSED_MMA(24, 12, "%12", "%13", "%14", "%15", "%16", "%17")
CUBIST_TRANSPOSED_MMA(32, 16, "%16", "%17", "%18", "%19", "%20", "%21")
CUBIST_TRANSPOSED_MMA(48, 24, "%24", "%25", "%26", "%27", "%28", "%29")
CUBIST_TRANSPOSED_MMA(64, 32, "%32", "%33", "%34", "%35", "%36", "%37")
CUBIST_TRANSPOSED_MMA(96, 48, "%48", "%49", "%50", "%51", "%52", "%53")

/// Low word of the descriptor of an operand without swizzle whose columns lie along K, as 8x8
/// matrices of 128 bytes: neighbours along the columns, `leading` bytes from eight rows to the
/// next.
__device__ __forceinline__ std::uint32_t plain_descriptor_base(std::uint32_t shared,
                                                               std::uint32_t leading) {
  return descriptor_base(shared, leading);
}
__device__ __forceinline__ std::uint64_t plain_matrix_descriptor(std::uint32_t base, int bytes) {
  constexpr std::uint64_t kHigh = std::uint64_t{128 >> 4} << 32;
  return kHigh | (base + static_cast<std::uint32_t>(bytes / 16));
}

/// Two or four 8x8 matrices of 16-bit elements to shared memory; lane l gives the address of row
/// l % 8 of matrix l / 8. Not ordered with other accesses: a fence must follow.
__device__ __forceinline__ void store_two_matrices(std::uint32_t shared, std::uint32_t r0,
                                                   std::uint32_t r1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared), "r"(r0),
               "r"(r1));
}
__device__ __forceinline__ void store_four_matrices(std::uint32_t shared, std::uint32_t r0,
                                                    std::uint32_t r1, std::uint32_t r2,
                                                    std::uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3));
}
/// The warp's 8x8 matrix of 16-bit elements transposed.
__device__ __forceinline__ std::uint32_t transpose_matrix(std::uint32_t r) {
  std::uint32_t transposed;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(r));
  return transposed;
}

/// The larger; NaN where one of them is.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

/// Waits for all `threads` threads of barrier `id`; true where `vote` is in one of them.
__device__ __forceinline__ bool any_of_named(int id, int threads, bool vote) {
  int any;
  asm volatile(
      "{\n.reg .pred own, any;\nsetp.ne.s32 own, %1, 0;\n"
      "barrier.cta.red.or.pred any, %2, %3, own;\nselp.s32 %0, 1, 0, any;\n}"
      : "=r"(any)
      : "r"(static_cast<int>(vote)), "r"(id), "r"(threads)
      : "memory");
  return any != 0;
}

}  // namespace cubist_decode
