#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::vector<Source> sources;
  std::vector<KernelRecord> kernels;

  bool operator==(const Pack&) const = default;
};

/// A parsed manifest (manifests/FORMAT.md). Valid by construction: see manifest/parse.h.
struct Manifest {
  static constexpr std::uint32_t kSchemaVersion = 1;

  std::string name;
  std::string description;
  std::vector<Pack> packs;
  /// Of the file it was read from: relative locations of sources start there. Empty if it came from
  /// text. Not part of the format.
  std::string folder;

  bool operator==(const Manifest&) const = default;
};

}  // namespace cubist
