#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/lent_string.h"
#include "base/sha256.h"
#include "model/kernel_record.h"

namespace cubist {

/// Where the files of a pack can be had. Tried in the manifest's order.
struct Source {
  enum class Kind : std::uint8_t {
    kHttp,    ///< location = URL of a folder; a kernel lies at location + prefix + path
    kFolder,  ///< location = folder on this machine
    kZip,     ///< location = wheel or zip: a file, or a URL read by ranges
    kPip,     ///< location = requirement "name==version": a wheel of the user's own package index
    kOci,     ///< location = oci://host/repository:tag; named by users, not by manifests
  };
  Kind kind = Kind::kHttp;
  std::string location;
  std::string prefix;  ///< put in front of a kernel's path; empty or ends in "/"

  bool operator==(const Source&) const = default;
};

/// Artifacts of one origin that share a family, heuristic revision, parameter layout and sources.
struct Pack {
  std::string name;
  std::string version;  ///< of the release it came from, for people
  std::string license;  ///< SPDX identifier
  KernelFamily family = KernelFamily::kTrtllmGenFmha;
  HeuristicRevision revision = HeuristicRevision::kTrtllmGenFmha_0_6_13;
  ParamLayout param_layout = ParamLayout::kTrtllmGenFmha1280;
  /// CUDA version that the driver must support at least, as cuDriverGetVersion numbers it; 0: not
  /// said.
  std::int32_t min_driver = 0;
  std::vector<Source> sources;
  std::vector<KernelRecord> kernels;
  /// Of the kernels' texts: keep it as long as the records themselves. Not part of the format.
  Lender lender{};

  bool operator==(const Pack&) const = default;
};

/// A parsed manifest (manifests/FORMAT.md). Valid by construction: see manifest/parse.h.
struct Manifest {
  static constexpr std::uint32_t kSchemaVersion = 2;  ///< the latest that is read and written

  static constexpr std::int64_t kMaxSerial = (std::int64_t{1} << 53) - 1;

  std::string name;
  std::string description;
  /// Later versions of a signed manifest have higher ones; 0: not said.
  std::int64_t serial = 0;
  std::string expires;  ///< "2027-01-31": its last day in UTC; empty: not said
  std::vector<Pack> packs;
  /// Of the file it was read from: relative locations of sources start there. Empty if it came from
  /// text. Not part of the format.
  std::string folder;

  bool operator==(const Manifest&) const = default;
};

}  // namespace cubist
