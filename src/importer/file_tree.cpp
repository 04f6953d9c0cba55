#include "importer/file_tree.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace cubist {
namespace {

namespace fs = std::filesystem;

// A published wheel has 16,000 to 30,000 files; a folder given by mistake ("/") must not run for
// ever.
constexpr std::size_t kMaxFiles = 1000000;

class FolderTree : public FileTree {
 public:
  FolderTree(std::string root, std::vector<TreeFile> files)
      : FileTree(Source::Kind::kFolder, std::move(root)) {
    set_files(std::move(files));
  }

 private:
  Result<std::vector<std::uint8_t>> read_file_at(const TreeFile& file,
                                                 std::uint64_t max_size) const override {
    return read_file(name() + "/" + file.path, max_size);
  }
};

class ZipTree : public FileTree {
 public:
  explicit ZipTree(ZipArchive archive)
      : FileTree(Source::Kind::kZip, archive.name()), archive_(std::move(archive)) {
    std::vector<TreeFile> files;
    files.reserve(archive_.members().size());
    for (const ZipMember& member : archive_.members()) files.push_back({member.name, member.size});
    set_files(std::move(files));
  }

 private:
  Result<std::vector<std::uint8_t>> read_file_at(const TreeFile& file,
                                                 std::uint64_t max_size) const override {
    return archive_.read(*archive_.find(file.path), max_size);
  }

  ZipArchive archive_;
};

}  // namespace

void FileTree::set_files(std::vector<TreeFile> files) {
  std::sort(files.begin(), files.end(),
            [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
  files_ = std::move(files);
}

const TreeFile* FileTree::find(std::string_view path) const {
  const auto found =
      std::lower_bound(files_.begin(), files_.end(), path,
                       [](const TreeFile& file, std::string_view p) { return file.path < p; });
  return found != files_.end() && found->path == path ? &*found : nullptr;
}

Result<std::vector<std::uint8_t>> FileTree::read(std::string_view path,
                                                 std::uint64_t max_size) const {
  const TreeFile* file = find(path);
  if (file == nullptr) return fail(StatusCode::kNotFound, "'{}' holds no file '{}'", name_, path);
  return read_file_at(*file, max_size);
}

Result<std::unique_ptr<FileTree>> open_folder_tree(const std::string& path) {
  std::error_code error;
  std::vector<TreeFile> files;
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink(error) || !entry->is_regular_file(error)) continue;
    const std::uint64_t size = entry->file_size(error);
    if (error) break;
    files.push_back({entry->path().lexically_relative(path).generic_string(), size});
    if (files.size() > kMaxFiles) {
      return fail(StatusCode::kInvalidArgument,
                  "'{}' holds more than {} files; name the folder of an unpacked wheel", path,
                  kMaxFiles);
    }
  }
  if (error) return tl::unexpected<Error>(errno_error("cannot list", path, error.value()));
  return std::make_unique<FolderTree>(path, std::move(files));
}

Result<std::unique_ptr<FileTree>> open_zip_tree(std::shared_ptr<RandomAccess> bytes) {
  CUBIST_ASSIGN_OR_RETURN(ZipArchive archive, ZipArchive::open(std::move(bytes)));
  return std::make_unique<ZipTree>(std::move(archive));
}

Result<std::unique_ptr<FileTree>> open_file_tree(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return open_folder_tree(path);
  CUBIST_ASSIGN_OR_RETURN(std::shared_ptr<RandomAccess> bytes, open_file_access(path));
  return open_zip_tree(std::move(bytes));
}

}  // namespace cubist
