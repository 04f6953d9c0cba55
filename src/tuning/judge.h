#pragma once

#include <cstddef>
#include <span>

#include "tuning/measured.h"

namespace cubist::tuning {

/// How good a model's choices are: what it would choose over the best that was measured, problem by
/// problem.
struct Judgement {
  std::size_t problems = 0;
  double mean = 1;
  double median = 1;
  double nine_in_ten = 1;
  double worst = 1;
  double within_5_percent = 1;  ///< part of the problems
};

Judgement judge(const selector::DecodeModel& model, std::span<const Measured> rows);

}  // namespace cubist::tuning
