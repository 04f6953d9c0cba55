#include "registry/directory_cache.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "registry/store_file.h"

// A file in <store>/index is one line of JSON and then the last bytes of the remote file:
//
//   {"cubist_directory":1,"key":"<digest>","offset":O,"sha256":"...","size":S,"validator":"..."}\n
//   bytes O to S of the remote file, whose digest is sha256

namespace cubist {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
// The directory of the largest published wheel has 4 MB.
constexpr std::uint64_t kMaxCacheBytes = 256 * 1024 * 1024;

std::string text_field(const Json& head, const char* name) {
  const auto found = head.find(name);
  return found != head.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_field(const Json& head, const char* name) {
  const auto found = head.find(name);
  return found != head.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::optional<HttpRangeAccess::Known> parse(const std::vector<std::uint8_t>& file,
                                            const std::string& key) {
  const auto line_end = std::find(file.begin(), file.end(), std::uint8_t{'\n'});
  if (line_end == file.end()) return std::nullopt;
  const Json head = Json::parse(file.begin(), line_end, nullptr, /*allow_exceptions=*/false);
  if (!head.is_object() || number_field(head, "cubist_directory") != kFormat ||
      text_field(head, "key") != key) {
    return std::nullopt;
  }
  HttpRangeAccess::Known known;
  known.size = number_field(head, "size");
  known.offset = number_field(head, "offset");
  known.validator = text_field(head, "validator");
  known.bytes.assign(line_end + 1, file.end());
  const bool whole = known.offset <= known.size &&
                     known.bytes.size() == known.size - known.offset &&
                     sha256(known.bytes).hex() == text_field(head, "sha256");
  return whole ? std::optional(std::move(known)) : std::nullopt;
}

}  // namespace

/// The key itself may hold a signed URL, so its digest stands for it.
std::string DirectoryCache::key_digest() const {
  return sha256({reinterpret_cast<const std::uint8_t*>(key_.data()), key_.size()}).hex();
}

std::string DirectoryCache::file_name() const { return "/index/" + key_digest() + ".dir"; }

std::optional<HttpRangeAccess::Known> DirectoryCache::load() const {
  for (const std::string& layer : store_.layers()) {
    const auto file = read_in_store(layer + file_name(), kStoreFileDepth, kMaxCacheBytes);
    if (!file) continue;
    if (auto known = parse(*file, key_digest())) return known;
    log(LogLevel::kInfo, "'{}' is damaged and not used", layer + file_name());
  }
  return std::nullopt;
}

Status DirectoryCache::write(const std::string& text) const {
  CUBIST_RETURN_IF_ERROR(make_folders(store_.root() + "/tmp", 1));
  CUBIST_RETURN_IF_ERROR(make_folders(store_.root() + "/index", 1));
  CUBIST_ASSIGN_OR_RETURN(StagedFile file,
                          StagedFile::create(store_.root() + "/tmp", kStoreFileDepth));
  CUBIST_RETURN_IF_ERROR(
      file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  CUBIST_RETURN_IF_ERROR(file.make_read_only());
  return file.publish_over(store_.root() + file_name(), kStoreFileDepth);
}

void DirectoryCache::save(HttpRangeAccess& access, std::uint64_t offset) const {
  offset = std::min(offset, access.size() - std::min(access.size(), HttpRangeAccess::kTailBytes));
  if (access.size() - offset > kMaxCacheBytes) return;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(access.size() - offset));
  if (!access.read(offset, bytes)) return;
  const Json head = {
      {"cubist_directory", kFormat},   {"key", key_digest()},   {"offset", offset},
      {"sha256", sha256(bytes).hex()}, {"size", access.size()}, {"validator", access.validator()}};
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const Status written = write(text); !written)
    log(LogLevel::kInfo, "not kept: {}", written.error().message());
}

void DirectoryCache::remove() const {
  unlink_in_store(store_.root() + file_name(), kStoreFileDepth);
}

}  // namespace cubist
