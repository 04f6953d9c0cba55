#include "support/fake_aux.h"

#include <cstring>

#include "model/aux_params.h"

namespace cubist::test {

void run_fake_aux_kernel(const FakeLaunch& launch) {
  if (!launch.function.starts_with("cubist_fuse_scales_")) return;
  if (launch.params.size() != sizeof(CubistFuseScalesParams)) return;
  CubistFuseScalesParams p;
  std::memcpy(&p, launch.params.data(), sizeof(p));
  const auto value = [](const float* on_device, float on_host) {
    return on_device != nullptr ? *on_device : on_host;
  };
  const float qk = value(p.q, p.q_value) * value(p.k, p.k_value);
  const float bmm1 = qk * value(p.sm, p.sm_value);
  *p.bmm1_scale_log2 = static_cast<float>(static_cast<double>(bmm1) * 1.4426950408889634);
  *p.bmm2_scale = value(p.v, p.v_value) * value(p.o, p.o_value);
}

}  // namespace cubist::test
