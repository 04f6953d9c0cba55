#pragma once

#include <string>
#include <utility>
#include <vector>

#include "archive/random_access.h"

namespace cubist::test {

/// Bytes in memory that keep count of how they are read.
class CountingAccess final : public RandomAccess {
 public:
  struct Read {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  explicit CountingAccess(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    reads.push_back({offset, out.size()});
    if (offset > bytes_.size() || bytes_.size() - offset < out.size()) {
      return fail(StatusCode::kIntegrity, "read past the end");
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

  std::vector<Read> reads;

 private:
  std::string name_ = "wheel.whl";
  std::vector<std::uint8_t> bytes_;
};

}  // namespace cubist::test
