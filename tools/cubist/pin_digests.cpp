#include "pin_digests.h"

#include "base/file.h"
#include "manifest_names.h"

namespace cubist::tools {
namespace {

bool is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Every run of exactly 64 hexadecimal digits.
void add_digests(const std::string& text, std::unordered_set<Sha256Digest>& digests) {
  constexpr std::size_t kDigits = 64;
  for (std::size_t begin = 0; begin < text.size();) {
    if (!is_digit(text[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end - begin == kDigits) {
      if (const auto digest = Sha256Digest::parse(text.substr(begin, kDigits))) {
        digests.insert(*digest);
      }
    }
    begin = end;
  }
}

Status add_pin(const std::string& name, std::unordered_set<Sha256Digest>& digests) {
  constexpr std::uint64_t kMaxPinFileBytes = 512ULL << 20;
  auto path = manifest_path(name);
  if (!path && path.error().code() != StatusCode::kNotFound) return forward_error(path);
  auto text = read_text_file(path ? *path : name, kMaxPinFileBytes);
  if (!text) return forward_error(text, "--pin " + name);
  const std::size_t before = digests.size();
  add_digests(*text, digests);
  if (digests.size() != before) return {};
  return fail(StatusCode::kInvalidArgument, "--pin {}: there is no SHA-256 in this file", name);
}

}  // namespace

Result<std::unordered_set<Sha256Digest>> read_pins(const std::vector<std::string>& names) {
  std::unordered_set<Sha256Digest> digests;
  for (const std::string& name : names) CUBIST_RETURN_IF_ERROR(add_pin(name, digests));
  return digests;
}

}  // namespace cubist::tools
