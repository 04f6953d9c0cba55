// The separate reduction over KV CTAs. One kernel a compilation: CUBIST_ENTRY names it,
// CUBIST_TYPE_O is the element type of O.

#include "reduce.cuh"

extern "C" __global__ void __launch_bounds__(cubist_aux::kReduceThreads, 2)
    CUBIST_ENTRY(const __grid_constant__ CubistReduceParams params) {
  cubist_aux::wait_for_preceding_kernel();
  cubist_aux::reduce<cubist_aux::Element::CUBIST_TYPE_O>(params, cubist_aux::place_of_thread());
  cubist_aux::release_following_kernel();
}
