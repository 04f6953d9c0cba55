#include "registry/manifest_index.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "manifest/parse.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"

namespace cubist {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

FileIdentity identity_of(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_ino),
          info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec,
          info.st_ctim.tv_sec * kNsPerSecond + info.st_ctim.tv_nsec};
}

/// Only files that nobody else could have written: they are believed like a manifest.
bool is_trusted(const struct stat& info) {
  return S_ISREG(info.st_mode) && (info.st_uid == ::geteuid() || info.st_uid == 0) &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// A read-only view of a file, kept by whoever has the pointer.
struct Mapping {
  std::span<const std::uint8_t> bytes;
  Lender lender;
};

std::optional<Mapping> map_file(const UniqueFd& fd, std::size_t size) {
  if (size == 0) return std::nullopt;
  // All of it is looked at at once (the checksum): better in one go than page by page.
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd.get(), 0);
  if (address == MAP_FAILED) return std::nullopt;
  return Mapping{{static_cast<const std::uint8_t*>(address), size},
                 {std::shared_ptr<const void>(address, [size](const void* mapped) {
                   ::munmap(const_cast<void*>(mapped), size);
                 })}};
}

/// errors  kIntegrity, kIo: why it is not used
Result<Mapping> map_trusted(const std::string& path) {
  UniqueFd fd = open_in_store(path, kStoreFileDepth, O_RDONLY);
  if (!fd.valid()) return tl::unexpected<Error>(errno_error("cannot open", path, errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return tl::unexpected<Error>(errno_error("cannot inspect", path, errno));
  }
  if (!is_trusted(info)) {
    return fail(StatusCode::kIntegrity,
                "it is no file, or others than this user and root could have written it");
  }
  std::optional<Mapping> mapping = map_file(fd, static_cast<std::size_t>(info.st_size));
  if (!mapping) return fail(StatusCode::kIo, "it cannot be mapped");
  return *std::move(mapping);
}

std::string folder_of_manifest(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Whether a change in place would surely show in the identity from now on.
bool is_settled(const FileIdentity& file, std::int64_t settled_ns) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return now - std::max(file.mtime_ns, file.ctime_ns) >= settled_ns;
}

}  // namespace

struct ManifestIndex::Found {
  std::string path;
  Mapping mapping;
  KernelIndexHead head;
};

std::optional<FileIdentity> file_identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return identity_of(info);
}

/// Of one user: where many share a store, nobody's file is in the way of another's. Two manifests
/// of one name by chance only take each other's place, since the head says whose index it is; so
/// there is no need of SHA-256, whose first use in a process takes a fifth of the time that opening
/// has.
std::string ManifestIndex::name_of(unsigned uid) const {
  std::error_code error;
  std::string key = std::filesystem::absolute(path_, error).lexically_normal().string();
  key += fmt::format("\n{}", CUBIST_INDEX_WRITER);
  return fmt::format("/index/{:016x}-{}.kidx", checksum64(bytes_of(key)), uid);
}

std::string ManifestIndex::file() const { return store_.root() + name_of(::geteuid()); }

/// The first index that stands for the file or text that is asked for.
std::optional<ManifestIndex::Found> ManifestIndex::find(
    const std::optional<FileIdentity>& identity, const std::optional<Sha256Digest>& sha256) const {
  std::vector<std::string> names = {name_of(::geteuid())};
  if (::geteuid() != 0) names.push_back(name_of(0));
  for (const std::string& layer : store_.layers()) {
    for (const std::string& name : names) {
      std::string path = layer + name;
      auto mapping = map_trusted(path);
      if (!mapping && mapping.error().code() == StatusCode::kNotFound) continue;
      const auto head = mapping ? read_kernel_index_head(mapping->bytes)
                                : tl::unexpected<Error>(std::move(mapping.error()));
      if (!head) {
        log(LogLevel::kInfo, "'{}' is not used: {}", path, head.error().message());
        continue;
      }
      const bool meant = sha256 ? head->manifest_sha256 == *sha256 : head->file == identity;
      if (meant) return Found{std::move(path), *std::move(mapping), *head};
    }
  }
  return std::nullopt;
}

std::optional<Manifest> ManifestIndex::read(const Found& found) const {
  Result<Manifest> manifest = read_kernel_index(found.mapping.bytes, found.mapping.lender);
  if (!manifest) {
    log(LogLevel::kInfo, "'{}' is not used: {}", found.path, manifest.error().message());
    return std::nullopt;
  }
  manifest->folder = folder_of_manifest(path_);
  return *std::move(manifest);
}

Result<Manifest> ManifestIndex::load() const {
  const std::optional<FileIdentity> before = file_identity(path_);
  if (!before || before->size_bytes < kMinManifestBytes) return load_manifest(path_);
  if (const std::optional<Found> found = find(before, std::nullopt)) {
    if (std::optional<Manifest> manifest = read(*found)) return *std::move(manifest);
  }
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path_, kMaxManifestBytes));
  const std::optional<FileIdentity> after = file_identity(path_);
  return parse_as(text, after == before ? after : std::nullopt);
}

Result<Manifest> ManifestIndex::parse(const std::string& text) const {
  return parse_as(text, std::nullopt);  // which state of the file it is of nobody knows
}

/// file  the text's own, if it is known to be
Result<Manifest> ManifestIndex::parse_as(const std::string& text,
                                         const std::optional<FileIdentity>& file) const {
  KernelIndexHead head;
  if (text.size() >= kMinManifestBytes) {
    head.manifest_sha256 = sha256(bytes_of(text));
    // A file that was copied or touched is the same manifest: only its identity is written anew.
    if (const std::optional<Found> found = find(std::nullopt, head.manifest_sha256)) {
      if (std::optional<Manifest> manifest = read(*found)) {
        if (file && found->head.file != *file) save(*manifest, {head.manifest_sha256, *file});
        return *std::move(manifest);
      }
    }
  }
  CUBIST_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(text, path_));
  manifest.folder = folder_of_manifest(path_);
  if (text.size() >= kMinManifestBytes)
    save(manifest, {head.manifest_sha256, file.value_or(FileIdentity{})});
  return manifest;
}

void ManifestIndex::save(const Manifest& manifest, const KernelIndexHead& head) const {
  if (!is_settled(head.file, settled_ns_)) return;
  const auto write = [&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes,
                            write_kernel_index(manifest, head));
    CUBIST_RETURN_IF_ERROR(make_folders(store_.root() + "/tmp", 1));
    CUBIST_RETURN_IF_ERROR(make_folders(store_.root() + "/index", 1));
    CUBIST_ASSIGN_OR_RETURN(StagedFile staged,
                            StagedFile::create(store_.root() + "/tmp", kStoreFileDepth));
    CUBIST_RETURN_IF_ERROR(staged.write(bytes));
    CUBIST_RETURN_IF_ERROR(staged.make_read_only());
    return staged.publish_over(file(), kStoreFileDepth);
  };
  if (const Status written = write(); !written) {
    log(LogLevel::kInfo, "no index of '{}' is kept: {}", path_, written.error().message());
  }
}

std::optional<std::string> ManifestIndex::current() const {
  const std::optional<FileIdentity> file = file_identity(path_);
  if (!file || file->size_bytes < kMinManifestBytes) return std::nullopt;
  const std::optional<Found> found = find(file, std::nullopt);
  if (!found || !read(*found)) return std::nullopt;
  return found->path;
}

}  // namespace cubist
