#include "gpu/decode_tensors.h"

#include <algorithm>
#include <cmath>

#include "reference/number_formats.h"

namespace cubist::test {
namespace {

std::vector<std::uint16_t> encode(Dtype dtype, const std::vector<float>& numbers) {
  std::vector<std::uint16_t> bits(numbers.size());
  std::transform(numbers.begin(), numbers.end(), bits.begin(),
                 [dtype](float number) { return encode_number(dtype, number); });
  return bits;
}

/// Q, K or V in its own type; `second` takes the places from `offset` on where `first` has NaN.
std::vector<std::uint8_t> encode_tensor(Dtype dtype, const std::vector<float>& first,
                                        const std::vector<float>* second, std::int64_t offset) {
  std::vector<float> merged = first;
  if (second != nullptr) {
    const auto shift = static_cast<std::size_t>(offset);
    for (std::size_t i = 0; i + shift < merged.size(); ++i) {
      if (!std::isnan((*second)[i])) merged[i + shift] = (*second)[i];
    }
  }
  const std::vector<std::uint16_t> bits = encode(dtype, merged);
  std::vector<std::uint8_t> bytes;
  bytes.reserve(bits.size() * 2);
  for (const std::uint16_t pattern : bits) {
    bytes.push_back(static_cast<std::uint8_t>(pattern & 0xff));
    if (dtype != Dtype::kE4m3) bytes.push_back(static_cast<std::uint8_t>(pattern >> 8));
  }
  return bytes;
}

/// Elements of a tensor's bytes, one each; e2m1's even ones come from the low half of a byte.
std::vector<std::uint16_t> patterns_of(Dtype dtype, const std::vector<std::uint8_t>& bytes) {
  const std::uint32_t bits = dtype_bits(dtype);
  const std::uint32_t mask = (1U << bits) - 1;
  std::vector<std::uint16_t> patterns(bytes.size() * 8 / bits);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::size_t at = i * bits / 8;
    std::uint32_t word = bytes[at];
    if (bits == 16) word |= static_cast<std::uint32_t>(bytes[at + 1]) << 8;
    patterns[i] = static_cast<std::uint16_t>(word >> (i * bits % 8) & mask);
  }
  return patterns;
}

}  // namespace

DecodeTensors::DecodeTensors(const Device& device, const DecodeVariant& variant,
                             const DecodeCase& made)
    : case_(made),
      dtype_o_(variant.dtype_o),
      v_offset_bytes_(static_cast<std::size_t>(made.v_offset) *
                      (variant.dtype_kv == Dtype::kE4m3 ? 1 : 2)) {
  const DecodeProblem& problem = made.problem;
  const auto upload = [&device](const auto& host) {
    return std::make_unique<DeviceBuffer>(device, host);
  };
  q_ = upload(encode_tensor(variant.dtype_q, problem.q, nullptr, 0));
  if (made.v_offset != 0) {
    k_ = upload(encode_tensor(variant.dtype_kv, problem.k, &problem.v, made.v_offset));
  } else {
    k_ = upload(encode_tensor(variant.dtype_kv, problem.k, nullptr, 0));
    if (!made.one_copy) v_ = upload(encode_tensor(variant.dtype_kv, problem.v, nullptr, 0));
  }
  sinks_ = upload(problem.sinks);
  block_table_ = upload(problem.block_table);
  seq_lens_kv_ = upload(problem.seq_lens_kv);
  cum_q_ = upload(problem.cum_seq_lens_q);
  scales_ = upload(std::vector<float>{static_cast<float>(problem.scale_log2),
                                      static_cast<float>(problem.output_scale)});
  o_ = std::make_unique<DeviceBuffer>(
      device, static_cast<std::size_t>(problem.sum_seq_q() * made.o_stride_tokens) *
                  dtype_bits(variant.dtype_o) / 8);
  if (variant.dtype_o == Dtype::kE2m1) {
    o_sf_ = std::make_unique<DeviceBuffer>(
        device, static_cast<std::size_t>(block_scales_of(made).size_bytes()));
  }
  lse_ = std::make_unique<DeviceBuffer>(
      device, static_cast<std::size_t>(problem.sum_seq_q() * problem.num_q_heads) * 4);
  poison();
}

void DecodeTensors::poison() {
  o_->fill(0xff);
  lse_->fill(0xff);
  if (o_sf_) o_sf_->fill(0xff);
}

DecodeOutput DecodeTensors::output() const {
  DecodeOutput output;
  output.o = patterns_of(dtype_o_, o_->download<std::uint8_t>());
  if (o_sf_) output.o_sf = o_sf_->download<std::uint8_t>();
  if (case_.wants_lse) output.lse = lse_->download<float>();
  return output;
}

}  // namespace cubist::test
