#include "launch_inputs.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "launcher/scales.h"
#include "reference/number_formats.h"

namespace cubist::tools {
namespace {

// A tensor larger than this is a typing error rather than a wish. Unit: bytes.
constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{256} << 30;

/// 256 normally distributed numbers as bit patterns: filling gigabytes is a look-up a number then,
/// and every number is exact in its type.
class NumberSource {
 public:
  NumberSource(Dtype dtype, std::uint64_t seed) : bytes_(dtype_bits(dtype) / 8), state_(seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (std::uint16_t& pattern : patterns_) pattern = encode_number(dtype, normal(random));
  }

  std::vector<std::uint8_t> fill(std::uint64_t elements) {
    std::vector<std::uint8_t> out(elements * bytes_);
    for (std::uint64_t i = 0; i < elements; i += 8) {
      std::uint64_t eight = next();
      for (std::uint64_t j = i; j < std::min(i + 8, elements); ++j, eight >>= 8) {
        const std::uint16_t pattern = patterns_[eight & 0xff];
        out[j * bytes_] = static_cast<std::uint8_t>(pattern & 0xff);
        if (bytes_ == 2) out[j * 2 + 1] = static_cast<std::uint8_t>(pattern >> 8);
      }
    }
    return out;
  }

 private:
  // SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  std::uint64_t bytes_;
  std::uint64_t state_;
  std::array<std::uint16_t, 256> patterns_{};
};

/// Elements from the first to behind the last of a tensor with these counts and strides.
std::uint64_t extent(std::initializer_list<std::array<std::int64_t, 2>> dims) {
  std::int64_t last = 0;
  for (const auto& [count, stride] : dims) last += (count - 1) * stride;
  return static_cast<std::uint64_t>(last) + 1;
}

Status check_size(std::string_view tensor, std::uint64_t elements, Dtype dtype) {
  if (elements * dtype_bits(dtype) / 8 <= kMaxTensorBytes) return {};
  return fail(StatusCode::kInvalidArgument, "{} would have {} elements of {}, more than {} GiB",
              tensor, elements, to_string(dtype), kMaxTensorBytes >> 30);
}

/// Every page once, in an order that jumps about: i -> (i * step) mod pages.
void fill_block_table(const AttentionProblem& p, std::vector<std::int32_t>& table) {
  const std::int64_t pages = p.num_pages;
  std::int64_t step = pages / 2 + 1;
  while (std::gcd(step, pages) != 1) ++step;
  table.resize(static_cast<std::size_t>(p.batch) * static_cast<std::size_t>(p.max_pages_per_seq));
  std::int64_t page = 0;
  for (std::int32_t& entry : table) {
    entry = static_cast<std::int32_t>(page);
    page = (page + step) % pages;
  }
}

void fill_lengths(const AttentionProblem& p, std::uint64_t seed, LaunchInputs& inputs) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int32_t> kv_len(p.max_kv_len - p.max_kv_len / 4, p.max_kv_len);
  std::uniform_int_distribution<std::int32_t> q_len(1, p.max_q_len);
  inputs.cum_seq_lens_q = {0};
  for (std::int32_t i = 0; i < p.batch; ++i) {
    inputs.seq_lens_kv.push_back(i == 0 ? p.max_kv_len : kv_len(random));
    const std::int32_t tokens = p.varlen_q && i > 0 ? q_len(random) : p.max_q_len;
    inputs.cum_seq_lens_q.push_back(inputs.cum_seq_lens_q.back() + tokens);
  }
  std::normal_distribution<float> sink;
  for (std::int32_t i = 0; p.sinks && i < p.num_q_heads; ++i) inputs.sinks.push_back(sink(random));
}

}  // namespace

Result<LaunchInputs> make_launch_inputs(const AttentionProblem& p, std::uint64_t seed) {
  const std::uint64_t q = extent(
      {{p.sum_seq_q, p.q_stride_tokens}, {p.num_q_heads, p.q_stride_heads}, {p.head_dim_qk, 1}});
  const std::uint64_t kv = extent({{p.num_pages, p.kv_stride_batch},
                                   {p.num_kv_heads, p.kv_stride_heads},
                                   {p.page_size, p.kv_stride_tokens},
                                   {p.head_dim_qk, 1}});
  // The second half of a page follows the first; MLA has one copy, K.
  const bool one_copy = p.is_mla;
  const std::uint64_t half =
      p.kv_combined && !one_copy ? static_cast<std::uint64_t>(p.kv_stride_batch) / 2 : 0;
  CUBIST_RETURN_IF_ERROR(check_size("q", q, p.dtype_q));
  CUBIST_RETURN_IF_ERROR(check_size("k", kv + half, p.dtype_k));

  LaunchInputs inputs;
  inputs.q = NumberSource(p.dtype_q, seed).fill(q);
  inputs.k = NumberSource(p.dtype_k, seed + 1).fill(kv + half);
  if (!p.kv_combined && !one_copy) inputs.v = NumberSource(p.dtype_v, seed + 2).fill(kv);
  inputs.v_offset = half * dtype_bits(p.dtype_k) / 8;
  fill_block_table(p, inputs.block_table);
  fill_lengths(p, seed + 3, inputs);
  const auto rows =
      static_cast<std::uint64_t>(p.sum_seq_q) * static_cast<std::uint64_t>(p.num_q_heads);
  inputs.o_bytes = rows * static_cast<std::uint64_t>(p.head_dim_vo) * dtype_bits(p.dtype_o) / 8;
  inputs.lse_count = p.lse ? rows : 0;
  return inputs;
}

Status check_scales(const AttentionProblem& problem) {
  const auto check = [](std::string_view field, const ScaleArgument& scale) -> Status {
    // By the limits and not by a cast, which is undefined for what no float32 can hold.
    const double size = std::abs(scale.value);
    if (scale.on_device ||
        (size <= std::numeric_limits<float>::max() && static_cast<float>(size) != 0.0F)) {
      return {};
    }
    return fail(StatusCode::kInvalidArgument, "{} is {}; it must be finite and not 0 as float32",
                field, scale.value);
  };
  CUBIST_RETURN_IF_ERROR(check("bmm1_scale", problem.bmm1_scale));
  return check("bmm2_scale", problem.bmm2_scale);
}

Result<LaunchScales> launch_scales(const AttentionProblem& problem) {
  CUBIST_RETURN_IF_ERROR(check_scales(problem));
  constexpr double kNotGiven = ScaleArgument{}.value;
  LaunchScales scales;
  if (problem.bmm1_scale.value == kNotGiven) {
    CUBIST_ASSIGN_OR_RETURN(scales.sm_scale, launcher::default_sm_scale(problem));
  } else {
    scales.sm_scale = static_cast<float>(problem.bmm1_scale.value);
  }
  scales.o_scale = static_cast<float>(problem.bmm2_scale.value);
  return scales;
}

}  // namespace cubist::tools
