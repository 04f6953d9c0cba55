#pragma once

#include <array>
#include <cstdint>

#include "gpu/decode_case.h"
#include "gpu/decode_tensors.h"
#include "gpu/device.h"
#include "model/decode_params.h"

namespace cubist::test {

/// A case with the geometry it was drawn with, ready for the kernel itself: parameter block, grid
/// and workspace, made here from kernels/decode/README.md and not by the launcher under test.
/// Partial results start as 0xff bytes, counters as zero.
class DecodeLaunch {
 public:
  DecodeLaunch(const Device& device, const DecodeVariant& variant, const DecodeCase& made,
               const DecodeTensors& tensors);

  const CubistDecodeParams& params() const { return params_; }
  /// {x, y, z}
  std::array<unsigned, 3> grid() const { return grid_; }
  /// Partial results 0xff again; counters stay.
  void poison();
  bool counters_are_zero() const;

 private:
  void set_geometry(const DecodeCase& made);
  void set_persistent_geometry(const DecodeCase& made);
  void encode_maps(const DecodeVariant& variant, const DecodeCase& made);
  void set_strides(const DecodeCase& made);
  void set_static_fields(const DecodeVariant& variant, const DecodeCase& made,
                         const DecodeTensors& tensors);
  void set_tensors(const DecodeCase& made, const DecodeTensors& tensors);

  const Device& device_;
  CubistDecodeParams params_ = {};
  std::array<unsigned, 3> grid_ = {1, 1, 1};
  std::unique_ptr<DeviceBuffer> partial_o_, partial_stats_, counters_;
};

}  // namespace cubist::test
