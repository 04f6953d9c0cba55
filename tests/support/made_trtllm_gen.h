#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace cubist::test {

/// Writes the shipped manifest of a release into `folder`, with files made for some of its kernels:
/// name, architecture, threads and parameter size are right, and there is no code.
///
/// source_dir   of this project
/// release      "0.6.13" or "0.6.8"
/// kernels      those that get a file; all others can only be selected
/// param_bytes  what the files declare; 0: what the release's layout has
/// returns      the manifest's path
std::string write_trtllm_gen(const std::string& source_dir, const std::string& folder,
                             const std::string& release, const std::set<std::string>& kernels,
                             std::uint32_t param_bytes = 0);

}  // namespace cubist::test
