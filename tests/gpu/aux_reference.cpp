#include "gpu/aux_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "gpu/random.h"
#include "launcher/scales.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

constexpr int kHeadDimQk = 16;  // the reduction never sees it
constexpr int kKeysPerTile = 128;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t as_size(std::int64_t value) { return static_cast<std::size_t>(value); }

Dtype partial_dtype(Dtype o) { return o == Dtype::kBf16 ? Dtype::kBf16 : Dtype::kFp16; }

std::vector<double> random_numbers(Random& random, std::size_t count) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = static_cast<double>(random.normal());
  return numbers;
}

/// One KV CTA's part of one row. `sum` and `o` are relative to 2^(scale * maximum).
struct Part {
  float maximum = -FLT_MAX;
  double sum = 0.0;
  std::vector<double> o;
};

class Reference {
 public:
  explicit Reference(const ReduceCase& made) : made_(made), random_(made.seed) {
    out_.scale_log2 = launcher::scale_log2(static_cast<double>(made.scale));
    allocate();
  }

  PartialResults run() {
    for (int sequence = 0; sequence < made_.batch(); ++sequence) {
      make_keys(sequence);
      for (int q_cta = 0; q_cta < made_.num_ctas_q(); ++q_cta) {
        for (int head_cta = 0; head_cta < num_head_ctas(); ++head_cta) {
          make_tile(sequence, q_cta, head_cta);
        }
      }
    }
    return std::move(out_);
  }

 private:
  int num_head_ctas() const { return made_.num_q_heads / made_.heads_per_cta(); }

  void allocate() {
    const std::int64_t tiles = std::int64_t{made_.batch()} * num_head_ctas() *
                               made_.num_head_dim_ctas * made_.num_ctas_q();
    const std::int64_t rows = tiles * made_.num_ctas_kv * made_.tile_q;
    out_.partial_o.assign(as_size(rows * made_.columns), 0xffff);
    out_.partial_stats.assign(as_size(rows * 2), std::nanf(""));
    if (made_.sinks) {
      for (int head = 0; head < made_.num_q_heads; ++head) {
        out_.sinks.push_back(random_.normal() * 2.0F + made_.sink_offset);
      }
    }
    if (!made_.q_lens.empty()) {
      for (int i = 0; i <= made_.batch(); ++i) {
        out_.cum_seq_lens_q.push_back(static_cast<std::int32_t>(made_.first_token(i)));
      }
    }
    const std::int64_t out_rows = made_.sum_seq_q() * made_.num_q_heads;
    out_.o.assign(as_size(out_rows * made_.head_dim_vo()), kNan);
    out_.joined_o = out_.magnitude = out_.o;
    out_.lse.assign(as_size(out_rows), kNan);
  }

  void make_keys(int sequence) {
    int count = made_.kv_lens[as_size(sequence)];
    for (const std::int32_t length : made_.topk_lens) count = std::max(count, length);
    keys_ = random_numbers(random_, as_size(std::int64_t{count} * made_.num_kv_heads) * kHeadDimQk);
    values_ = random_numbers(
        random_, as_size(std::int64_t{count} * made_.num_kv_heads * made_.head_dim_vo()));
    num_keys_ = count;
  }

  /// Keys [0, n) that a token of the sequence sees: of its own past, or so many selected ones.
  int keys_of(int sequence, int token) const {
    if (!made_.topk_lens.empty()) {
      return made_.topk_lens[as_size(made_.first_token(sequence) + token)];
    }
    const int past = made_.kv_lens[as_size(sequence)] - made_.q_len(sequence) + token + 1;
    const int seen = std::max(past, 0);
    return made_.sparse_topk > 0 ? std::min(seen, made_.sparse_topk) : seen;
  }

  void make_tile(int sequence, int q_cta, int head_cta) {
    const int first = q_cta * made_.tokens_per_cta();
    const int tokens = std::min(made_.tokens_per_cta(), made_.q_len(sequence) - first);
    int most_keys = 0;
    for (int token = 0; token < tokens; ++token) {
      most_keys = std::max(most_keys, keys_of(sequence, first + token));
    }
    const int key_tiles = (most_keys + kKeysPerTile - 1) / kKeysPerTile;
    num_entries_ = std::min(key_tiles, made_.num_ctas_kv);
    key_tiles_ = key_tiles;
    for (int token = 0; token < tokens; ++token) {
      for (int head = 0; head < made_.heads_per_cta(); ++head) {
        make_row(sequence, q_cta, head_cta, token, head);
      }
    }
  }

  void make_row(int sequence, int q_cta, int head_cta, int token, int head_in_cta) {
    const int token_in_sequence = q_cta * made_.tokens_per_cta() + token;
    const int head = head_cta * made_.heads_per_cta() + head_in_cta;
    const std::vector<Part> parts =
        parts_of(head / made_.heads_per_kv(), keys_of(sequence, token_in_sequence));
    const std::int64_t out_row =
        (made_.first_token(sequence) + token_in_sequence) * made_.num_q_heads + head;
    std::vector<Part> rounded = parts;
    for (Part& part : rounded) round_part(part);
    for (int column_cta = 0; column_cta < made_.num_head_dim_ctas; ++column_cta) {
      const std::int64_t y = std::int64_t{head_cta} * made_.num_head_dim_ctas + column_cta;
      const std::int64_t rows_y = std::int64_t{num_head_ctas()} * made_.num_head_dim_ctas;
      const std::int64_t tile = (sequence * rows_y + y) * made_.num_ctas_q() + q_cta;
      store_parts(rounded, tile, token * made_.heads_per_cta() + head_in_cta, column_cta);
    }
    join(parts, out_row, head, out_.o);
    join(rounded, out_row, head, out_.joined_o);
  }

  /// What each KV CTA computes for one row: whole tiles of keys, dealt out in order.
  std::vector<Part> parts_of(int kv_head, int seen) {
    const std::vector<double> query = random_numbers(random_, kHeadDimQk);
    std::vector<double> scores(as_size(seen));
    for (int key = 0; key < seen; ++key) {
      const double* row = &keys_[as_size(key_row(kv_head, key)) * kHeadDimQk];
      scores[as_size(key)] = std::inner_product(query.begin(), query.end(), row, 0.0);
    }
    std::vector<Part> parts(as_size(num_entries_));
    for (Part& part : parts) part.o.assign(as_size(made_.head_dim_vo()), 0.0);
    const auto part_of = [&](int key) -> Part& {
      return parts[as_size(std::int64_t{key} / kKeysPerTile * num_entries_ / key_tiles_)];
    };
    for (int key = 0; key < seen; ++key) {
      Part& part = part_of(key);
      part.maximum = std::max(part.maximum, static_cast<float>(scores[as_size(key)]));
    }
    const auto scale = static_cast<double>(out_.scale_log2);
    for (int key = 0; key < seen; ++key) {
      Part& part = part_of(key);
      const double weight =
          std::exp2(scale * (scores[as_size(key)] - static_cast<double>(part.maximum)));
      part.sum += weight;
      const double scaled = weight * static_cast<double>(made_.output_scale);
      const double* value = &values_[as_size(key_row(kv_head, key) * made_.head_dim_vo())];
      for (double& o : part.o) o += scaled * *value++;
    }
    return parts;
  }

  std::int64_t key_row(int kv_head, int key) const {
    return std::int64_t{kv_head} * num_keys_ + key;
  }

  double sum_scale() const { return made_.dtype_q == Dtype::kE4m3 ? 448.0 : 1.0; }

  void round_part(Part& part) const {
    const Dtype dtype = partial_dtype(made_.dtype_o);
    const auto stored = static_cast<float>(part.sum * sum_scale());
    part.sum = static_cast<double>(stored) / sum_scale();
    for (double& o : part.o) o = static_cast<double>(round_to(dtype, static_cast<float>(o)));
  }

  void store_parts(const std::vector<Part>& parts, std::int64_t tile, int row, int column_cta) {
    const Dtype dtype = partial_dtype(made_.dtype_o);
    for (std::size_t entry = 0; entry < parts.size(); ++entry) {
      const std::size_t at =
          (as_size(tile * made_.num_ctas_kv) + entry) * as_size(made_.tile_q) + as_size(row);
      const Part& part = parts[entry];
      out_.partial_stats[2 * at] = part.maximum;
      out_.partial_stats[2 * at + 1] = static_cast<float>(part.sum * sum_scale());
      if (part.sum == 0.0 && made_.poisons_entries_without_keys) {
        out_.partial_stats[2 * at] = 1e30F;
        continue;
      }
      for (int column = 0; column < made_.columns; ++column) {
        out_.partial_o[at * as_size(made_.columns) + as_size(column)] = encode_number(
            dtype, static_cast<float>(part.o[as_size(column_cta * made_.columns + column)]));
      }
    }
  }

  /// Puts a row's parts together, with the head's sink; nothing counts where nothing was seen.
  void join(const std::vector<Part>& parts, std::int64_t out_row, int head,
            std::vector<double>& o) {
    const auto scale = static_cast<double>(out_.scale_log2);
    double maximum = -kInfinity;
    for (const Part& part : parts) {
      if (part.sum > 0.0) maximum = std::max(maximum, static_cast<double>(part.maximum) * scale);
    }
    const double sink = made_.sinks
                            ? static_cast<double>(out_.sinks[as_size(head)]) * std::numbers::log2e
                            : -kInfinity;
    maximum = std::max(maximum, sink);
    double sum = sink == -kInfinity ? 0.0 : std::exp2(sink - maximum);
    std::vector<double> row(as_size(made_.head_dim_vo()), 0.0);
    std::vector<double> magnitude = row;
    for (const Part& part : parts) {
      if (part.sum == 0.0) continue;
      const double weight = std::exp2(static_cast<double>(part.maximum) * scale - maximum);
      sum += part.sum * weight;
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] += part.o[i] * weight;
        magnitude[i] += std::fabs(part.o[i]) * weight;
      }
    }
    const double inverse = sum == 0.0 ? 0.0 : 1.0 / sum;
    const std::size_t start = as_size(out_row) * row.size();
    for (std::size_t i = 0; i < row.size(); ++i) {
      o[start + i] = row[i] * inverse;
      out_.magnitude[start + i] = magnitude[i] * inverse;
    }
    out_.lse[as_size(out_row)] = maximum + std::log2(sum);
  }

  const ReduceCase& made_;
  Random random_;
  PartialResults out_;
  std::vector<double> keys_;    ///< of the sequence in hand: [num_kv_heads, keys, kHeadDimQk]
  std::vector<double> values_;  ///< [num_kv_heads, keys, head_dim_vo]
  int num_keys_ = 0;
  int num_entries_ = 0;  ///< of the tile in hand
  int key_tiles_ = 0;
};

/// Half the distance of neighbouring numbers at `value`.
double half_spacing(Dtype dtype, double value) {
  const double smallest_normal = dtype == Dtype::kE4m3   ? 0x1p-6
                                 : dtype == Dtype::kFp16 ? 0x1p-14
                                                         : 0x1p-126;
  return 0.5 * spacing_of(dtype) * std::max(std::fabs(value), smallest_normal);
}

// What float32 may lose: exponents of up to 60 in size rounded to 24 bits, a 2^x good to 2 ulp, and
// sums of a dozen terms. As a part of the sum of magnitudes.
constexpr double kFloatError = 8e-6;
// Exponents and logarithms of size 60 in float32, each rounded a few times.
constexpr double kLseTolerance = 4e-5;

class Check {
 public:
  Check(const ReduceCase& made, const PartialResults& expected) : made_(made), e_(expected) {}

  ReduceErrors run(const ReduceOutput& output) {
    check_o(output.o);
    check_lse(output);
    return std::move(errors_);
  }

 private:
  void miss(const std::string& what) {
    if (errors_.failure.empty()) errors_.failure = what;
  }

  void check_o(const std::vector<std::uint8_t>& bytes) {
    const bool one_byte = made_.dtype_o == Dtype::kE4m3;
    if (bytes.size() < e_.o.size() * (one_byte ? 1 : 2)) return miss("O is too short");
    for (std::size_t i = 0; i < e_.o.size(); ++i) {
      const auto bits =
          static_cast<std::uint16_t>(one_byte ? bytes[i] : bytes[2 * i] | bytes[2 * i + 1] << 8);
      check_element(i, static_cast<double>(decode_number(made_.dtype_o, bits)));
    }
  }

  void check_element(std::size_t i, double got) {
    const double last = half_spacing(made_.dtype_o, e_.joined_o[i]) + kFloatError * e_.magnitude[i];
    // fp16 partial results below its normal range lose up to 2^-25 each.
    const double partial =
        0.5 * spacing_of(partial_dtype(made_.dtype_o)) * e_.magnitude[i] + 0x1p-24;
    const double joined = std::fabs(got - e_.joined_o[i]) / (1.01 * last);
    const double attention = std::fabs(got - e_.o[i]) / (1.01 * (last + partial));
    if (!(joined <= 1.0) || !(attention <= 1.0)) {
      miss(fmt::format("O[{}] is {}; joined {}, attention {}", i, got, e_.joined_o[i], e_.o[i]));
    }
    errors_.joined = std::max(errors_.joined, joined);
    errors_.attention = std::max(errors_.attention, attention);
  }

  void check_one_lse(const char* what, std::size_t i, double got) {
    if (std::isinf(e_.lse[i]) || std::isinf(got)) {
      if (got != e_.lse[i]) miss(fmt::format("{} {} is {}; {} expected", what, i, got, e_.lse[i]));
      return;
    }
    const double error = std::fabs(got - e_.lse[i]);
    if (!(error <= kLseTolerance * std::max(1.0, std::fabs(e_.lse[i]) / 60.0))) {
      miss(fmt::format("{} {} is {}; {} expected", what, i, got, e_.lse[i]));
    }
    errors_.lse = std::max(errors_.lse, error);
  }

  void check_lse(const ReduceOutput& output) {
    if (!made_.wants_lse) return;
    if (output.softmax_stats.size() < 2 * e_.lse.size() || output.lse.size() < e_.lse.size()) {
      return miss("statistics or LSE are too short");
    }
    for (std::size_t i = 0; i < e_.lse.size(); ++i) {
      const auto maximum = static_cast<double>(output.softmax_stats[2 * i]);
      const auto sum = static_cast<double>(output.softmax_stats[2 * i + 1]);
      check_one_lse("the LSE of statistics", i, maximum * std::numbers::log2e + std::log2(sum));
      check_one_lse("LSE", i, static_cast<double>(output.lse[i]));
    }
  }

  const ReduceCase& made_;
  const PartialResults& e_;
  ReduceErrors errors_;
};

}  // namespace

PartialResults partial_results(const ReduceCase& made) { return Reference(made).run(); }

ReduceErrors check_reduction_output(const ReduceCase& made, const PartialResults& expected,
                                    const ReduceOutput& output) {
  return Check(made, expected).run(output);
}

}  // namespace cubist::test
