#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/trtllm_gen/params.h"
#include "launcher/trtllm_gen/tensor_maps.h"

namespace cubist::trtllm_gen {

/// The parameter block of one main kernel, in the layout that its plan names, and the descriptors
/// that belong into it. Fixed size; for the caller's frame.
class ParamBlock {
 public:
  /// Everything but the descriptors' bytes, which stay 0; the descriptors are described and held
  /// against the driver's rules. Pure; allocates nothing unless it fails.
  ///
  /// problem  as prepare_problem gives it
  /// num_sms  of the device
  /// errors   kInvalidArgument: a value that does not fit its member, or a descriptor that breaks
  ///          one of the driver's rules (names the tensor and the rule)
  ///          kUnsupported: the plan's layout is not known here
  Status fill(const AttentionProblem& problem, const LaunchPlan& plan, std::int32_t num_sms,
              const Addresses& addresses);

  /// Has the driver encode the descriptors into the block.
  /// errors  kDriverError: the driver refuses one; names the tensor
  Status encode(const driver::Driver& driver);

  const TensorMaps& tensor_maps() const { return maps_; }
  std::span<const std::uint8_t> bytes() const { return {storage_.bytes, size_}; }
  /// Where the descriptors end and the plain members begin.
  std::size_t scalars_offset() const { return scalars_offset_; }
  /// A descriptor's place, by its slot's name; null: the layout has none of that name.
  TensorMapSlot* slot(std::string_view name);

 private:
  /// Both layouts begin where the block does.
  union Storage {
    Storage() : bytes{} {}
    Params1280 params_1280;
    Params1152 params_1152;
    std::uint8_t bytes[sizeof(Params1280)];
  };

  Storage storage_;
  ParamLayout layout_ = ParamLayout::kTrtllmGenFmha1280;
  std::size_t size_ = 0;
  std::size_t scalars_offset_ = 0;
  TensorMaps maps_;
};

}  // namespace cubist::trtllm_gen
