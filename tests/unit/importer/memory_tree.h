#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "importer/file_tree.h"

namespace cubist::test {

/// A tree whose files are in memory.
class MemoryTree : public FileTree {
 public:
  explicit MemoryTree(const std::map<std::string, std::string>& files)
      : FileTree(Source::Kind::kFolder, "/release"), contents_(files) {
    std::vector<TreeFile> list;
    for (const auto& [path, text] : files) list.push_back({path, text.size()});
    set_files(std::move(list));
  }

 private:
  Result<std::vector<std::uint8_t>> read_file_at(const TreeFile& file,
                                                 std::uint64_t max_size) const override {
    const std::string& text = contents_.at(file.path);
    if (text.size() > max_size) return fail(StatusCode::kIntegrity, "'{}' is too large", file.path);
    return std::vector<std::uint8_t>(text.begin(), text.end());
  }

  std::map<std::string, std::string> contents_;
};

}  // namespace cubist::test
