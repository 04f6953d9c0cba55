#include "registry/partial_file.h"

#include <algorithm>

#include "base/log.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"
#include "registry/store_layout.h"

namespace cubist {
namespace {

constexpr std::string_view kMagic = "cubist partial 1\n";
// Asking for so little again costs less than a file.
constexpr std::size_t kMinBytes = 16 * 1024;
constexpr std::size_t kMaxHeadBytes = 1024;

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string head_of(const std::string& key, const std::string& validator) {
  return fmt::format("{}{}\n{}\n", kMagic, key, validator);
}

Status write_partial(const std::string& path, const std::string& head, const PartialBody& partial) {
  const std::string folder = path.substr(0, path.rfind('/'));
  CUBIST_RETURN_IF_ERROR(make_folders(folder, kStoreFileDepth - 1));
  CUBIST_ASSIGN_OR_RETURN(StagedFile file, StagedFile::create(folder, kStoreFileDepth));
  CUBIST_RETURN_IF_ERROR(file.write(as_bytes(head)));
  CUBIST_RETURN_IF_ERROR(file.write(partial.bytes));
  return file.publish_over(path, kStoreFileDepth);
}

/// Null if the text is of another key or no such file at all.
std::shared_ptr<const PartialBody> parse_partial(std::string_view text, const std::string& key) {
  const std::string begin = fmt::format("{}{}\n", kMagic, key);
  if (!text.starts_with(begin)) return nullptr;
  text.remove_prefix(begin.size());
  const std::size_t end = text.substr(0, kMaxHeadBytes).find('\n');
  if (end == std::string_view::npos || end == 0) return nullptr;
  auto partial = std::make_shared<PartialBody>();
  partial->validator = text.substr(0, end);
  text.remove_prefix(end + 1);
  partial->bytes.assign(text.begin(), text.end());
  if (partial->bytes.empty()) return nullptr;
  return partial;
}

}  // namespace

std::string partial_path(const std::string& store_root, const Sha256Digest& digest) {
  return fmt::format("{}/tmp/{}.resume", store_root, digest.hex());
}

std::string partial_key(const HttpRequest& request) {
  std::string text = request.url.text + "\n";
  if (request.range) text += fmt::format("{}+{}", request.range->offset, request.range->length);
  return sha256(as_bytes(text)).hex();
}

void save_partial(const std::string& store_root, const Sha256Digest& digest, const std::string& key,
                  const PartialBody& partial) {
  const std::string head = head_of(key, partial.validator);
  if (partial.bytes.size() < kMinBytes || head.size() > kMaxHeadBytes) return;
  const Status written = write_partial(partial_path(store_root, digest), head, partial);
  if (!written) log(LogLevel::kDebug, "not kept: {}", written.error().message());
}

std::shared_ptr<const PartialBody> take_partial(const std::string& store_root,
                                                const Sha256Digest& digest, const std::string& key,
                                                std::uint64_t max_bytes) {
  const std::string path = partial_path(store_root, digest);
  const auto file = read_in_store(path, kStoreFileDepth, max_bytes + kMaxHeadBytes);
  if (!file && file.error().code() == StatusCode::kNotFound) return nullptr;
  unlink_in_store(path, kStoreFileDepth);
  if (!file) return nullptr;
  return parse_partial({reinterpret_cast<const char*>(file->data()), file->size()}, key);
}

}  // namespace cubist
