#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/zip.h"
#include "base/result.h"
#include "manifest/manifest.h"

namespace cubist {

/// A file of a tree, by its path below the tree's root ("/"-separated).
struct TreeFile {
  std::string path;
  std::uint64_t size = 0;
};

/// What an import reads from: the files of a wheel, or of a folder it was unpacked to. Listing them
/// costs nothing; contents are read one by one. Const functions are safe from several threads if
/// those of what lies below are.
class FileTree {
 public:
  virtual ~FileTree() = default;
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  /// What messages call it: a path or URL.
  const std::string& name() const { return name_; }
  /// The place a manifest would name for it; without a prefix.
  Source source() const { return {kind_, name_, ""}; }
  /// All regular files, sorted by path.
  const std::vector<TreeFile>& files() const { return files_; }
  /// Null if there is no such file.
  const TreeFile* find(std::string_view path) const;

  /// The file's bytes.
  /// errors  kNotFound; kIntegrity if it has more than max_size bytes; whatever reading fails with
  Result<std::vector<std::uint8_t>> read(std::string_view path, std::uint64_t max_size) const;

 protected:
  FileTree(Source::Kind kind, std::string name) : kind_(kind), name_(std::move(name)) {}
  /// Sorts them.
  void set_files(std::vector<TreeFile> files);

 private:
  virtual Result<std::vector<std::uint8_t>> read_file_at(const TreeFile& file,
                                                         std::uint64_t max_size) const = 0;

  Source::Kind kind_;
  std::string name_;
  std::vector<TreeFile> files_;
};

/// A folder on this machine. Symbolic links are not followed: what they point to is not listed.
/// errors  kNotFound, kIo
Result<std::unique_ptr<FileTree>> open_folder_tree(const std::string& path);

/// A wheel or other zip, from anything that can be read at an offset.
Result<std::unique_ptr<FileTree>> open_zip_tree(std::shared_ptr<RandomAccess> bytes);

/// A wheel file or a folder on this machine, whichever `path` is.
Result<std::unique_ptr<FileTree>> open_file_tree(const std::string& path);

}  // namespace cubist
