#pragma once

#include <cstdint>
#include <vector>

#include "gpu/aux_case.h"
#include "gpu/aux_reference.h"
#include "launcher/trtllm_gen/arguments.h"

namespace cubist::test {

/// The memory of one reduction, on the host: addresses are host addresses, and the kernels' code
/// runs thread by thread in place of a GPU. Outputs and guards behind them start as 0xa5.
class ReduceOnHost {
 public:
  ReduceOnHost(const ReduceCase& made, const PartialResults& partial);

  /// Reduction, then LSE where it is wanted.
  ReduceOutput run();
  /// Bytes of outputs and their guards that no row owns and that were written nevertheless.
  std::int64_t stray_bytes() const;
  trtllm_gen::Addresses addresses() const;

 private:
  ReduceLaunch launch_;
  const ReduceCase& made_;
  std::vector<float> sinks_;
  std::vector<std::int32_t> cum_seq_lens_q_;
  std::vector<std::int32_t> topk_lens_;
  float scale_log2_;
  std::vector<std::uint8_t> workspace_;
  std::uint64_t workspace_start_ = 0;  ///< first aligned address in workspace_
  std::vector<std::uint8_t> o_;
  std::uint64_t o_start_ = 0;
  std::vector<float> lse_;
};

}  // namespace cubist::test
