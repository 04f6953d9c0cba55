#pragma once

#include "support/fake_libcuda.h"

namespace cubist::test {

/// Does on the CPU what the fuse kernel of manifests/cubist-aux.json does; other functions do
/// nothing.
void run_fake_aux_kernel(const FakeLaunch& launch);

}  // namespace cubist::test
