#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "workingset/working_set.h"

namespace cubist::workingset {

/// What a set file says besides the set.
struct SetInfo {
  std::vector<std::string> manifests;  ///< names
  std::string model;                   ///< empty: no preset
  std::string device;
  std::string overrides;          ///< file of the rules that were applied; empty: none
  std::uint64_t all_kernels = 0;  ///< of the manifests
  std::uint64_t all_bytes = 0;
};

/// The set as text (docs/working-sets.md): one kernel a line, the same text for the same set.
std::string write_set(const WorkingSet& set, const Query& query, const SetInfo& info);

/// One kernel of a set file; what fetching needs.
struct SetEntry {
  std::string name;
  std::string pack;
  Sha256Digest sha256;
  std::uint64_t size_bytes = 0;
};

struct SetFile {
  std::vector<std::string> manifests;
  std::vector<SetEntry> kernels;
};

/// Reads a set file; members that fetching does not need are not looked at.
/// errors  kInvalidArgument: not a set file, a member that is missing or wrong, a hash twice
Result<SetFile> parse_set(std::string_view text, std::string_view file_name);
Result<SetFile> load_set(const std::string& path);

}  // namespace cubist::workingset
