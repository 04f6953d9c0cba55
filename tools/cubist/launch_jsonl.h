#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/problem_json.h"
#include "model/launch_plan.h"
#include "select_jsonl.h"

namespace cubist::tools {

/// Appends what a launch of the selection's best plan would pass to the driver: the plan as
/// `cubist select --jsonl` prints it, then, under the names of the recordings of the published
/// runtime,
///
///   params_size        bytes of the parameter block
///   params_hex_offset  where the plain members begin, behind the descriptors
///   params_hex         the block from there on
///   tensor_maps        the descriptors: slot, addr, dtype, dims, strides (bytes), box, ...
///
/// line    the whole line, for its addresses (launch_addresses.h)
/// errors  of read_addresses, the parameter fillers and the descriptors' rules; `out` is unchanged
Status append_launch_answer(std::string_view line, const ProblemLine& problem,
                            const Selection& selection, std::string& out);

/// What `cubist launch --dry-run --jsonl` works on.
struct LaunchJsonl {
  std::vector<std::string> manifests;
  std::string file;  ///< of problems; "-": standard input
  DeviceProfile device;
  bool strict = false;
};

/// Answers every line of the file on standard output; see run_jsonl.
/// errors  those of open_manifests and run_jsonl; kNotFound, kIo: the file
Result<JsonlCounts> run_launch_jsonl(const LaunchJsonl& what);

}  // namespace cubist::tools
