#include <memory>
#include <utility>

#include "archive/zip.h"
#include "base/file.h"

namespace cubist {
namespace {

class FileAccess final : public RandomAccess {
 public:
  FileAccess(std::string path, UniqueFd fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  const std::string& name() const override { return path_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return read_exactly_at(fd_, offset, out, path_);
  }

 private:
  std::string path_;
  UniqueFd fd_;
  std::uint64_t size_;
};

}  // namespace

Result<std::shared_ptr<RandomAccess>> open_file_access(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(UniqueFd fd, open_regular_file(path));
  return file_access(path, std::move(fd));
}

Result<std::shared_ptr<RandomAccess>> file_access(std::string name, UniqueFd fd) {
  CUBIST_ASSIGN_OR_RETURN(const std::uint64_t size, file_size(fd, name));
  return std::make_shared<FileAccess>(std::move(name), std::move(fd), size);
}

}  // namespace cubist
