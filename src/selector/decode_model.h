#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cubist::selector {

/// A static cubist_decode kernel's microseconds for 64 keys, with an SM to itself and for each CTA
/// more on it, and how many of them an SM has.
struct StaticCost {
  std::uint32_t bits = 0;  ///< of an element of K: 8 or 16
  std::int32_t head_dim = 0;
  std::int32_t tile_q = 0;
  double alone = 0;
  double more = 0;
  std::int64_t per_sm = 1;

  bool operator==(const StaticCost&) const = default;
};

/// What the model of time of the cubist_decode rules is made of (decode_costs.h has its formulas).
/// Unit: microseconds of the GPU it was fitted to. Plain data; a table borrows it.
struct DecodeModel {
  static constexpr std::size_t kMaxStaticCosts = 64;

  std::string source;  ///< for explain: "the shipped model", or a file and what it was tuned on

  double static_start = 0;  ///< static kernels: a launch,
  double wave = 0;          ///< a wave of CTAs,
  double join = 0;          ///< parts that are joined,
  double static_part = 0;   ///< each of them
  double start = 0;         ///< persistent kernels: a launch,
  double sequence = 0;      ///< a sequence of a group,
  double group_join = 0;    ///< groups that share sequences,
  double group_part = 0;    ///< each of them,
  double element = 0;       ///< 64 keys, for an element of a row of K
  double mla_start = 0;     ///< MLA kernels: the same,
  double mla_sequence = 0;
  double mla_tile = 0;  ///< 64 keys
  double mla_join = 0;
  double mla_part = 0;
  double mla_uneven = 0;  ///< groups that end inside sequences
  std::array<StaticCost, kMaxStaticCosts> static_costs{};
  std::size_t num_static_costs = 0;  ///< at least 1

  bool operator==(const DecodeModel&) const = default;
};

/// That of the shipped kernels, fitted to an H200.
const DecodeModel& shipped_decode_model();

}  // namespace cubist::selector
