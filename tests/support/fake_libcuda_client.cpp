#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "support/fake_libcuda.h"

namespace cubist::test {

const char* fake_libcuda_path() { return CUBIST_FAKE_LIBCUDA; }

FakeCuda& fake_cuda() {
  static FakeCuda* control = [] {
    void* library = dlopen(CUBIST_FAKE_LIBCUDA, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      std::fprintf(stderr, "cannot open the stand-in: %s\n", dlerror());
      std::abort();
    }
    using Get = FakeCuda* (*)();
    return reinterpret_cast<Get>(dlsym(library, "cubist_fake_cuda_control"))();
  }();
  return *control;
}

const std::vector<int>& all_cuda_errors() {
  // CUDA driver API 13.0, enum cudaError_enum without the two deprecated "already started" pairs.
  static const std::vector<int> codes = {
      1,   2,   3,   4,   34,  36,  46,  100, 101, 102, 200, 201, 205, 206, 209, 214, 215,
      217, 218, 220, 221, 222, 223, 224, 225, 226, 300, 301, 302, 303, 304, 400, 401, 402,
      500, 600, 700, 701, 702, 703, 704, 705, 708, 709, 710, 711, 714, 715, 716, 717, 718,
      719, 720, 721, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 810, 811, 812, 900,
      901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916, 999};
  return codes;
}

}  // namespace cubist::test
