#pragma once

#include <cstdint>

#include "variant.h"

/// The sm_90a instructions of the stream kernels, one function each: mbarriers, TMA, named
/// barriers, warpgroup MMA. Shared memory is addressed by 32-bit shared addresses.
namespace cubist_decode {

__device__ __forceinline__ void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
/// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives and announces `bytes` that copies will bring.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Returns once the phase of that parity is complete.
__device__ __forceinline__ void wait_barrier(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nWAIT_%=:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra WAIT_%=;\n}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

/// Ordinary stores to shared memory before it are seen by wgmma and the copy engine after it.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/// One box to shared memory; coordinates: element, token, panel, head, page.
__device__ __forceinline__ void copy_box(std::uint32_t shared, const void* map,
                                         std::uint32_t barrier, int token, int panel, int head,
                                         int page) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(0), "r"(token), "r"(panel), "r"(head), "r"(page)
      : "memory");
}

/// Waits for all `threads` threads of barrier `id`.
__device__ __forceinline__ void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <int kRegisters>
__device__ __forceinline__ void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
/// All but the newest group are complete.
__device__ __forceinline__ void wgmma_wait_but_newest() {
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}
/// Keeps the compiler from moving what defines or uses these registers across this point; wgmma
/// works on them in between without its knowing.
template <int kCount>
__device__ __forceinline__ void pin(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin(std::uint32_t (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(values[i])::"memory");
}

/// Low word of the descriptor of a 128-byte swizzled operand, the same in every lane so that it
/// lives in a uniform register; an operand some bytes further on has that many sixteenths more.
/// `leading`: bytes from panel to panel where columns lie along K; unused where rows do.
__device__ __forceinline__ std::uint32_t descriptor_base(std::uint32_t shared,
                                                         std::uint32_t leading) {
  return __shfl_sync(0xffffffffU, (shared & 0x3ffffU) >> 4 | leading >> 4 << 16, 0);
}
__device__ __forceinline__ std::uint64_t matrix_descriptor(std::uint32_t base, int bytes) {
  constexpr std::uint64_t kHigh = std::uint64_t{1} << 62 | std::uint64_t{1024 >> 4} << 32;
  return kHigh | (base + static_cast<std::uint32_t>(bytes / 16));
}

#define CUBIST_ACCUMULATORS_8(c, i)                                                           \
  "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
      "+f"(c[i + 6]), "+f"(c[i + 7])
#define CUBIST_ACCUMULATORS_32(c, i)                                                              \
  CUBIST_ACCUMULATORS_8(c, i), CUBIST_ACCUMULATORS_8(c, i + 8), CUBIST_ACCUMULATORS_8(c, i + 16), \
      CUBIST_ACCUMULATORS_8(c, i + 24)
#define CUBIST_LIST_32                                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CUBIST_LIST_64                                                                           \
  CUBIST_LIST_32                                                                                 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// c (64 x 64) = or += a b^T: 16 columns of a and b, whose rows lie along K in shared memory.
#define CUBIST_WGMMA_KEYS(type)                                                       \
  asm volatile(                                                                       \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"                                \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" CUBIST_LIST_32 \
      "}, %32, %33, add, 1, 1, 0, 0;\n}"                                              \
      : CUBIST_ACCUMULATORS_32(c, 0)                                                  \
      : "l"(a), "l"(b), "r"(add))
template <Type kType>
__device__ __forceinline__ void wgmma_keys(float (&c)[32], std::uint64_t a, std::uint64_t b,
                                           int add) {
  if constexpr (kType == Type::kBf16) {
    CUBIST_WGMMA_KEYS("bf16");
  } else {
    CUBIST_WGMMA_KEYS("f16");
  }
}

// The same with a in registers.
#define CUBIST_WGMMA_KEYS_OF_ROWS(type)                                               \
  asm volatile(                                                                       \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"                                \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" CUBIST_LIST_32 \
      "}, {%32, %33, %34, %35}, %36, add, 1, 1, 0;\n}"                                \
      : CUBIST_ACCUMULATORS_32(c, 0)                                                  \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add))
template <Type kType>
__device__ __forceinline__ void wgmma_keys_of_rows(float (&c)[32], const std::uint32_t (&a)[4],
                                                   std::uint64_t b, int add) {
  if constexpr (kType == Type::kBf16) {
    CUBIST_WGMMA_KEYS_OF_ROWS("bf16");
  } else {
    CUBIST_WGMMA_KEYS_OF_ROWS("f16");
  }
}

// c (64 x head_dim) += a b: 16 rows of b, whose columns lie along K; a in registers.
#define CUBIST_WGMMA_VALUES_64(type)                                                           \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" CUBIST_LIST_32 \
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"                                     \
               : CUBIST_ACCUMULATORS_32(c, 0)                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define CUBIST_WGMMA_VALUES_128(type)                                                           \
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" CUBIST_LIST_64 \
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"                                      \
               : CUBIST_ACCUMULATORS_32(c, 0), CUBIST_ACCUMULATORS_32(c, 32)                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
template <Type kType, int kCount>
__device__ __forceinline__ void wgmma_values(float (&c)[kCount], const std::uint32_t* a,
                                             std::uint64_t b) {
  if constexpr (kCount == 32 && kType == Type::kBf16) {
    CUBIST_WGMMA_VALUES_64("bf16");
  } else if constexpr (kCount == 32) {
    CUBIST_WGMMA_VALUES_64("f16");
  } else if constexpr (kType == Type::kBf16) {
    CUBIST_WGMMA_VALUES_128("bf16");
  } else {
    CUBIST_WGMMA_VALUES_128("f16");
  }
}

#define CUBIST_ACCUMULATORS_128(c)                                                            \
  CUBIST_ACCUMULATORS_32(c, 0), CUBIST_ACCUMULATORS_32(c, 32), CUBIST_ACCUMULATORS_32(c, 64), \
      CUBIST_ACCUMULATORS_32(c, 96)
#define CUBIST_LIST_128                                                                          \
  CUBIST_LIST_64                                                                                 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "   \
  "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, "   \
  "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// c (64 x 64) += a b^T: 16 columns of a, in registers, and of b, whose rows lie along K.
#define CUBIST_WGMMA_KEYS_OF_REGISTERS(type)                                                   \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" CUBIST_LIST_32 \
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"                                     \
               : CUBIST_ACCUMULATORS_32(c, 0)                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
template <Type kType>
__device__ __forceinline__ void wgmma_keys_of_registers(float (&c)[32], const std::uint32_t* a,
                                                        std::uint64_t b) {
  if constexpr (kType == Type::kBf16) {
    CUBIST_WGMMA_KEYS_OF_REGISTERS("bf16");
  } else {
    CUBIST_WGMMA_KEYS_OF_REGISTERS("f16");
  }
}

// c (64 x 256) += a b: 16 rows of b, whose columns lie along K; a in registers, or in shared memory
// with its rows along K.
#define CUBIST_WGMMA_VALUES_256(type)                                                            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" CUBIST_LIST_128 \
               "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;"                                  \
               : CUBIST_ACCUMULATORS_128(c)                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define CUBIST_WGMMA_SHARED_VALUES_256(type)                                                     \
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" CUBIST_LIST_128 \
               "}, %128, %129, 1, 1, 1, 0, 1;"                                                   \
               : CUBIST_ACCUMULATORS_128(c)                                                      \
               : "l"(a), "l"(b))
template <Type kType>
__device__ __forceinline__ void wgmma_wide_values(float (&c)[128], const std::uint32_t* a,
                                                  std::uint64_t b) {
  if constexpr (kType == Type::kBf16) {
    CUBIST_WGMMA_VALUES_256("bf16");
  } else {
    CUBIST_WGMMA_VALUES_256("f16");
  }
}
template <Type kType>
__device__ __forceinline__ void wgmma_wide_values(float (&c)[128], std::uint64_t a,
                                                  std::uint64_t b) {
  if constexpr (kType == Type::kBf16) {
    CUBIST_WGMMA_SHARED_VALUES_256("bf16");
  } else {
    CUBIST_WGMMA_SHARED_VALUES_256("f16");
  }
}

/// Four 8x8 matrices of 16-bit elements to shared memory; lane l gives the address of row l % 8 of
/// matrix l / 8.
__device__ __forceinline__ void store_matrices(std::uint32_t shared, const std::uint32_t* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace cubist_decode
