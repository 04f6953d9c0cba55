#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist {

/// "name==version": one release of one project.
struct PipRequirement {
  std::string name;  ///< normalised as PEP 503 says: lower case, runs of "-_." are one "-"
  std::string version;
};

/// errors  kInvalidArgument: anything but a name, "==" and a version
Result<PipRequirement> parse_pip_requirement(std::string_view text);

/// A file that an index lists.
struct IndexFile {
  std::string filename;
  std::string url;     ///< as written there; may be relative
  std::string sha256;  ///< 64 digits, or empty
  std::optional<std::uint64_t> size_bytes;
};

/// The simple repository API's JSON form (PEP 691). errors  kNetwork: not that
Result<std::vector<IndexFile>> parse_index_json(std::string_view text);
/// The HTML form (PEP 503), for indexes that have no other: every link with an href.
std::vector<IndexFile> parse_index_html(std::string_view text);

/// The wheel of a release that any platform can use, else any wheel of it; null if there is none.
/// A version without "+local" part also accepts a wheel that has one, as pip does.
const IndexFile* choose_wheel(const std::vector<IndexFile>& files,
                              const PipRequirement& requirement);

/// Versions of the wheels listed, newest listed last, for messages.
std::vector<std::string> wheel_versions(const std::vector<IndexFile>& files,
                                        const PipRequirement& requirement);

}  // namespace cubist
