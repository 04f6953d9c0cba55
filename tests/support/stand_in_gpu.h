#pragma once

#include "support/environment.h"
#include "support/fake_libcuda.h"
#include "support/scratch.h"

namespace cubist::test {

/// For commands that use a GPU: a store of their own, and the stand-in as libcuda.
struct StandInGpu {
  const Scratch store;
  const Environment environment{Environment::Values{{"CUBIST_LIBCUDA", fake_libcuda_path()},
                                                    {"CUBIST_STORE", store.path()},
                                                    {"CUBIST_FAKE_CUDA_DEVICES", std::nullopt},
                                                    {"CUBIST_FAKE_CUDA_FAIL", std::nullopt}}};
};

}  // namespace cubist::test
