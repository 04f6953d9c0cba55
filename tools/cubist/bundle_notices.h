#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "bundle/description.h"

namespace cubist::tools {

struct BundleNotices {
  std::string license;  ///< which pack is under which licence, and the licences' texts
  std::string notice;   ///< whose kernels these are and where they come from
};

/// What a bundle says of the rights in its kernels.
///
/// packs            those the kernels are from
/// folders          of manifests: LICENCE.txt is looked for in their licenses/
/// license_files    further licence texts
/// notice_files     further notices, byte for byte
/// errors           kNotFound: a pack's licence has no text here, and none was given; kIo
Result<BundleNotices> make_notices(const std::vector<bundle::PackOrigin>& packs,
                                   const std::vector<std::string>& folders,
                                   const std::vector<std::string>& license_files,
                                   const std::vector<std::string>& notice_files);

}  // namespace cubist::tools
