#include "registry/stored_bundle.h"

#include <sys/file.h>

#include <algorithm>

#include "registry/entry_file.h"
#include "registry/store_layout.h"

namespace cubist {
namespace {

class StoredFile final : public RandomAccess {
 public:
  StoredFile(std::string path, EntryFile file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string& name() const override { return path_; }
  std::uint64_t size() const override { return file_.size_bytes; }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return read_entry_at(file_, path_, offset, out);
  }

 private:
  std::string path_;
  EntryFile file_;
};

/// The digest in "sha256/ab/<64 hex digits>.cubin".
std::optional<Sha256Digest> kernel_of(const std::string& member) {
  const std::size_t slash = member.rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto digest = parse_entry_name(std::string_view(member).substr(slash + 1));
  if (!digest || member != entry_relative_path(*digest)) return std::nullopt;
  return digest;
}

}  // namespace

Result<std::shared_ptr<const StoredBundle>> StoredBundle::open(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(std::optional<EntryFile> file, open_entry(path, kStoreFileDepth));
  if (!file) return fail(StatusCode::kNotFound, "there is no bundle '{}'", path);
  mark_in_use(*file);
  return read_directory(std::make_shared<StoredFile>(path, std::move(*file)));
}

Result<std::shared_ptr<const StoredBundle>> StoredBundle::read_directory(
    std::shared_ptr<RandomAccess> file) {
  const std::uint64_t file_bytes = file->size();
  CUBIST_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::open(std::move(file)));
  return std::shared_ptr<const StoredBundle>(new StoredBundle(std::move(zip), file_bytes));
}

StoredBundle::StoredBundle(ZipArchive zip, std::uint64_t file_bytes)
    : zip_(std::move(zip)), file_bytes_(file_bytes) {
  const std::vector<ZipMember>& members = zip_.members();
  kernels_.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (const auto digest = kernel_of(members[i].name)) {
      kernels_.push_back({*digest, members[i].size, i});
    }
  }
  const auto by_digest = [](const Kernel& a, const Kernel& b) { return a.sha256 < b.sha256; };
  if (!std::is_sorted(kernels_.begin(), kernels_.end(), by_digest)) {
    std::sort(kernels_.begin(), kernels_.end(), by_digest);
  }
}

const StoredBundle::Kernel* StoredBundle::find(const Sha256Digest& digest) const {
  const auto at = std::lower_bound(
      kernels_.begin(), kernels_.end(), digest,
      [](const Kernel& kernel, const Sha256Digest& wanted) { return kernel.sha256 < wanted; });
  return at == kernels_.end() || at->sha256 != digest ? nullptr : &*at;
}

std::string StoredBundle::place_of(const Kernel& kernel) const {
  return fmt::format("{}:{}", path(), zip_.members()[kernel.member].name);
}

Result<VerifiedCubin> StoredBundle::open_verified(const Kernel& kernel,
                                                  std::uint64_t size_bytes) const {
  if (kernel.size_bytes != size_bytes) {
    return fail(StatusCode::kIntegrity, "'{}' has {} bytes, the manifest says {}", place_of(kernel),
                kernel.size_bytes, size_bytes);
  }
  CUBIST_ASSIGN_OR_RETURN(auto bytes, zip_.read(zip_.members()[kernel.member], size_bytes));
  return VerifiedCubin::verify(std::move(bytes), kernel.sha256, size_bytes, place_of(kernel));
}

}  // namespace cubist
