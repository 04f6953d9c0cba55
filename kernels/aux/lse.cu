// Softmax statistics to log-sum-exp, one thread an entry. CUBIST_ENTRY names the kernel.

#include "lse.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    CUBIST_ENTRY(const __grid_constant__ CubistLseParams params) {
  cubist_aux::wait_for_preceding_kernel();
  cubist_aux::write_lse(params, static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  cubist_aux::release_following_kernel();
}
