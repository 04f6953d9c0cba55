#pragma once

/// The aux kernels have no shared memory and no barriers: each thread's work is a function of its
/// place. So the same code is compiled by nvcc for the kernels and by a host compiler for tests
/// that walk over the threads of a launch without a GPU.
#ifdef __CUDACC__
#define CUBIST_AUX_FN __host__ __device__ __forceinline__
#define CUBIST_AUX_UNROLL _Pragma("unroll")
#else
#define CUBIST_AUX_FN inline
#define CUBIST_AUX_UNROLL
#endif

namespace cubist_aux {

/// Where a thread is in its launch.
struct Place {
  unsigned block_x;
  unsigned block_y;
  unsigned block_z;
  unsigned grid_y;
  unsigned thread;
};

#ifdef __CUDACC__
__device__ __forceinline__ Place place_of_thread() {
  return {blockIdx.x, blockIdx.y, blockIdx.z, gridDim.y, threadIdx.x};
}

/// Returns once everything the preceding kernel of the stream wrote is visible. Comes before the
/// first load, and in CTAs without work too: a kernel is not over before the ones in front of it.
__device__ __forceinline__ void wait_for_preceding_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the following kernel's CTAs start where there is room; they still wait for our writes.
__device__ __forceinline__ void release_following_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

/// An entry of softmax statistics.
struct alignas(8) Stats {
  float maximum;
  float sum;
};

}  // namespace cubist_aux
