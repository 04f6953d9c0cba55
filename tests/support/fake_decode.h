#pragma once

#include "support/fake_libcuda.h"

namespace cubist::test {

/// Does on the CPU what a cubist_decode kernel of that name would do with these parameters; other
/// functions do nothing.
void run_fake_kernel(const FakeLaunch& launch);

}  // namespace cubist::test
