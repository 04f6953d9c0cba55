#pragma once

#include "support/fake_libcuda.h"

namespace cubist::test {

/// Does on the CPU what a cubist_decode kernel of that name would do with these parameters; other
/// functions do nothing. False where the workspace's counters were not zero, which a kernel could
/// not tell but would give wrong results for.
bool run_fake_kernel(const FakeLaunch& launch);

}  // namespace cubist::test
