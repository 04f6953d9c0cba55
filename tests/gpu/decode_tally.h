#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "gpu/decode_case.h"
#include "gpu/decode_check.h"

namespace cubist::test {

/// Results of the cases so far, by kernel and by types. Safe from any thread.
class DecodeTally {
 public:
  /// `label`: which kernel; `where`: how to find the case again, for the message of a failure.
  void add(const DecodeVariant& variant, const std::string& label, const std::string& where,
           const DecodeErrors& errors, std::size_t rows);
  /// A table, and the number of failures in the last line.
  void print() const;
  int failures() const { return failures_; }
  int cases() const { return cases_; }

 private:
  struct Group {
    int cases = 0;
    std::size_t rows = 0;
    double worst_of_tolerance = 0.0;
    double worst_frobenius = 0.0;
    double worst_lse = 0.0;
  };

  std::mutex mutex_;
  std::map<std::string, Group> kernels_;
  std::map<std::string, Group> types_;
  int cases_ = 0;
  int failures_ = 0;
};

/// Runs `work` on as many threads as the machine has cores and waits for all.
void on_all_cores(const std::function<void()>& work);

}  // namespace cubist::test
