#include "model/verified_cubin.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace cubist {
namespace {

/// What bytes that are not the wanted cubin look like; a hint for the message, never a decision.
std::string_view describe(std::span<const std::uint8_t> bytes, std::uint64_t expected_size) {
  if (bytes.empty()) return "the file is empty";
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 512));
  if (head.starts_with("version https://git-lfs")) {
    return "this is a Git LFS pointer, not the file it stands for (run 'git lfs pull' at the "
           "source)";
  }
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && head[first] == '<') {
    return "this looks like HTML or XML: a login page, proxy or error page in place of the file";
  }
  if (!head.starts_with("\x7f"
                        "ELF"))
    return "these bytes are no ELF file";
  if (bytes.size() < expected_size) return "the file is truncated";
  const auto tail = bytes.last(std::min<std::size_t>(bytes.size(), 512));
  if (std::all_of(tail.begin(), tail.end(), [](std::uint8_t b) { return b == 0; })) {
    return "the file ends in zeros: an interrupted write or copy";
  }
  return "an ELF file with other contents";
}

}  // namespace

Result<VerifiedCubin> VerifiedCubin::verify(std::vector<std::uint8_t> bytes,
                                            const Sha256Digest& expected,
                                            std::uint64_t expected_size_bytes,
                                            const std::string& origin) {
  if (bytes.size() != expected_size_bytes) {
    return fail(StatusCode::kIntegrity, "'{}' has {} bytes, the manifest says {}: {}", origin,
                bytes.size(), expected_size_bytes, describe(bytes, expected_size_bytes));
  }
  const Sha256Digest found = cubist::sha256(bytes);
  if (found != expected) {
    return fail(StatusCode::kIntegrity, "sha256 mismatch for '{}': manifest {}, found {}: {}",
                origin, expected.hex(), found.hex(), describe(bytes, expected_size_bytes));
  }
  return VerifiedCubin(std::move(bytes), found);
}

}  // namespace cubist
