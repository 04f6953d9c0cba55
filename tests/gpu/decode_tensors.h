#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/decode_case.h"
#include "gpu/decode_check.h"
#include "gpu/device.h"

namespace cubist::test {

/// A case's inputs and outputs in device memory. Outputs start as 0xff bytes. What the case does
/// not give is null.
class DecodeTensors {
 public:
  DecodeTensors(const Device& device, const DecodeVariant& variant, const DecodeCase& made);

  void* q() const { return q_->pointer(); }
  void* k() const { return k_->pointer(); }
  void* v() const { return v_ ? v_->pointer() : k_->as<std::uint8_t>(v_offset_bytes_); }
  void* o() const { return o_->pointer(); }
  /// nvfp4 output: its block scales; else null.
  void* o_sf() const { return o_sf_ ? o_sf_->pointer() : nullptr; }
  float* sinks() const { return case_.problem.sinks.empty() ? nullptr : sinks_->as<float>(); }
  float* lse() const { return case_.wants_lse ? lse_->as<float>() : nullptr; }
  std::int32_t* block_table() const { return block_table_->as<std::int32_t>(); }
  std::int32_t* seq_lens_kv() const { return seq_lens_kv_->as<std::int32_t>(); }
  std::int32_t* cum_seq_lens_q() const {
    return case_.gives_cum_seq_lens_q ? cum_q_->as<std::int32_t>() : nullptr;
  }
  float* bmm1_scale_log2() const { return case_.scales_on_device ? scales_->as<float>() : nullptr; }
  float* bmm2_scale() const { return case_.scales_on_device ? scales_->as<float>(1) : nullptr; }

  /// Outputs 0xff again.
  void poison();
  DecodeOutput output() const;

 private:
  const DecodeCase& case_;
  Dtype dtype_o_;
  std::size_t v_offset_bytes_;
  std::unique_ptr<DeviceBuffer> q_, k_, v_, o_, sinks_, lse_, block_table_, seq_lens_kv_, cum_q_,
      scales_, o_sf_;
};

}  // namespace cubist::test
