#include "gpu/decode_tally.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace cubist::test {

void DecodeTally::add(const DecodeVariant& variant, const std::string& label,
                      const std::string& where, const DecodeErrors& errors, std::size_t rows) {
  const std::lock_guard lock(mutex_);
  const std::string types = std::string(to_string(variant.dtype_q)) + " Q, " +
                            std::string(to_string(variant.dtype_kv)) + " KV, " +
                            std::string(to_string(variant.dtype_o)) + " O";
  for (Group* group : {&kernels_[label], &types_[types]}) {
    ++group->cases;
    group->rows += rows;
    group->worst_of_tolerance = std::max(group->worst_of_tolerance, errors.worst_of_tolerance);
    group->worst_lse = std::max(group->worst_lse, errors.worst_lse);
    if (errors.squared_norm > 0.0) {
      group->worst_frobenius =
          std::max(group->worst_frobenius, std::sqrt(errors.squared_error / errors.squared_norm));
    }
  }
  ++cases_;
  if (errors.failure.empty()) return;
  ++failures_;
  std::printf("FAILED %s: %s\n  %s\n", label.c_str(), where.c_str(), errors.failure.c_str());
}

void DecodeTally::print() const {
  std::printf("%-52s %6s %8s  %s\n", "", "cases", "rows",
              "largest error/tolerance, relative Frobenius error, LSE error");
  for (const auto* groups : {&kernels_, &types_}) {
    for (const auto& [name, group] : *groups) {
      std::printf("%-52s %6d %8zu  %.3f  %.2e  %.1e\n", name.c_str(), group.cases, group.rows,
                  group.worst_of_tolerance, group.worst_frobenius, group.worst_lse);
    }
    std::printf("\n");
  }
  std::printf("%d cases, %d failed\n", cases_, failures_);
}

void on_all_cores(const std::function<void()>& work) {
  std::vector<std::thread> threads;
  const unsigned count = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cubist::test
