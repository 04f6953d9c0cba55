#pragma once

#include <string>
#include <vector>

#include "cubin/cubin_file.h"
#include "model/kernel_record.h"

namespace cubist {

/// One fact on which a manifest and a cubin differ.
struct Disagreement {
  std::string field;     ///< as in the manifest: "arch", "threads", ...
  std::string manifest;  ///< what the manifest says
  std::string cubin;     ///< what the file says

  bool operator==(const Disagreement&) const = default;
};

/// "threads: the manifest says 512, the cubin 384"
std::string to_string(const Disagreement& disagreement);

/// Everything a cubin says of itself against what the manifest says of it: the architecture and
/// whether it is a family's, a kernel of the record's name and that kernel's threads, dynamic
/// shared memory, parameter bytes (against `layout`) and two-CTA mark. What the file does not say
/// is not compared. Empty if all agree. Pure; safe from any thread.
std::vector<Disagreement> cross_check(const CubinFile& cubin, const KernelRecord& record,
                                      ParamLayout layout);

}  // namespace cubist
