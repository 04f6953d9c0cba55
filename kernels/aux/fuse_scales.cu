// Five scales to the two that attention kernels read. One thread. CUBIST_ENTRY names the kernel.

#include "fuse_scales.cuh"

extern "C" __global__ void __launch_bounds__(32)
    CUBIST_ENTRY(const __grid_constant__ CubistFuseScalesParams params) {
  cubist_aux::wait_for_preceding_kernel();
  if (threadIdx.x == 0 && blockIdx.x == 0) cubist_aux::fuse_scales(params);
  cubist_aux::release_following_kernel();
}
