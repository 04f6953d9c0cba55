#include "importer/checksums.h"

#include <algorithm>
#include <optional>

#include "manifest/text.h"
#include "manifest/validate.h"

// <sha256 in hex> <space> <space or "*"> <path> <newline>

namespace cubist {
namespace {

constexpr std::size_t kDigits = 64;

Result<ChecksumLine> parse_line(std::string_view line, std::string_view place) {
  const std::optional<Sha256Digest> digest = Sha256Digest::parse(line.substr(0, kDigits));
  if (!digest) {
    return fail(StatusCode::kManifestInvalid,
                "{}: {} does not start with a SHA-256 of 64 hex digits", place, shown(line));
  }
  std::string_view path = line.substr(kDigits);
  const std::size_t start = path.find_first_not_of(" \t");
  if (start == 0 || start == std::string_view::npos) {
    return fail(StatusCode::kManifestInvalid, "{}: no path behind the digest", place);
  }
  path.remove_prefix(start);
  if (path.front() == '*') path.remove_prefix(1);
  if (const std::string_view problem = path_problem(path); !problem.empty()) {
    return fail(StatusCode::kManifestInvalid, "{}: the path {} {}", place, shown(path), problem);
  }
  return ChecksumLine{*digest, path};
}

}  // namespace

Result<std::vector<ChecksumLine>> parse_checksums(std::string_view text, std::string_view file) {
  std::vector<ChecksumLine> lines;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    CUBIST_ASSIGN_OR_RETURN(const ChecksumLine parsed,
                            parse_line(line, fmt::format("{}:{}", file, number)));
    lines.push_back(parsed);
  }
  const auto by_path = [](const ChecksumLine& a, const ChecksumLine& b) { return a.path < b.path; };
  std::sort(lines.begin(), lines.end(), by_path);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].path != lines[i - 1].path) continue;
    return fail(StatusCode::kManifestInvalid, "{}: {} is named twice", file, shown(lines[i].path));
  }
  return lines;
}

}  // namespace cubist
