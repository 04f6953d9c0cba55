#pragma once

#include <cstddef>
#include <cstdint>

#include "model/kernel_record.h"
#include "selector/decode_model.h"
#include "selector/request.h"

namespace cubist::tuning {

/// One way to launch a problem, and what it took.
struct Measured {
  std::size_t problem = 0;  ///< ways of one problem have one number
  selector::Request request;
  const KernelRecord* record = nullptr;
  std::int64_t columns = 1;  ///< selector::DecodeSplit
  std::int32_t num_ctas_kv = 1;
  double us = 0;  ///< GPU time of a launch

  bool is_static() const { return record->traits.scheduler == TileScheduler::kStatic; }
};

}  // namespace cubist::tuning
