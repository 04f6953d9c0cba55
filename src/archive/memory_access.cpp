#include <algorithm>
#include <memory>
#include <utility>

#include "archive/zip.h"

namespace cubist {
namespace {

class MemoryAccess final : public RandomAccess {
 public:
  MemoryAccess(std::string name, std::span<const std::uint8_t> bytes)
      : name_(std::move(name)), bytes_(bytes) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    if (offset > bytes_.size() || bytes_.size() - offset < out.size()) {
      return fail(StatusCode::kIntegrity, "'{}' has {} bytes; {} bytes from {} were expected",
                  name_, bytes_.size(), out.size(), offset);
    }
    const auto source = bytes_.subspan(static_cast<std::size_t>(offset), out.size());
    std::copy(source.begin(), source.end(), out.begin());
    return {};
  }

 private:
  std::string name_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace

std::shared_ptr<RandomAccess> memory_access(std::string name, std::span<const std::uint8_t> bytes) {
  return std::make_shared<MemoryAccess>(std::move(name), bytes);
}

}  // namespace cubist
