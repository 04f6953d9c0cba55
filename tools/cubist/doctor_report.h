#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor_findings.h"
#include "model/device_profile.h"
#include "trust/revocations.h"

namespace cubist::tools {

/// What there is on this machine for Cubist to work with. Everything may be missing; a problem is a
/// sentence in its place. No credentials, no names of servers: made to be pasted into a report.
struct DoctorReport {
  struct Driver {
    std::string library;  ///< what dlopen accepted; empty: none
    std::string cuda_version;
    std::string problem;
    std::vector<DeviceProfile> devices;
    std::string devices_problem;
  };
  struct StoreState {
    std::string root;
    std::vector<std::string> base_layers;
    bool exists = false;
    bool writable = false;  ///< it, or the folder that would hold it
    std::uint64_t entries = 0;
    std::uint64_t entry_bytes = 0;
    std::uint64_t bundles = 0;
    std::uint64_t bundled_kernels = 0;
    std::uint64_t bundle_bytes = 0;
    std::uint64_t unfinished_files = 0;  ///< in tmp/
    std::optional<std::uint64_t> free_bytes;
    std::string problem;
  };
  struct ManifestState {
    std::string name;
    std::string path;
    std::uint64_t kernels = 0;
    std::vector<std::string> architectures;
    bool shipped = false;
    std::string signed_by;  ///< number of the key; empty: nobody who is trusted
    std::string problem;
  };
  struct TrustState {
    std::vector<std::string> keys;  ///< numbers of those trusted now
    std::string retired;            ///< which of those pinned are not any more; empty: none
    std::string manifest_signatures;
    std::string foreign_store;
    std::size_t key_statements = 0;
    std::vector<trust::RevocationList> lists;
    std::size_t revoked_kernels = 0;
    std::string problem;
  };
  struct Pip {
    bool found = false;
    std::size_t indexes = 0;
    std::string problem;
  };

  std::string version;
  std::string compiler;
  std::string system;  ///< kernel and machine
  Driver driver;
  StoreState store;
  TrustState trust;
  std::vector<ManifestState> manifests;
  std::string configuration_file;       ///< where it is looked for; empty: nowhere
  std::vector<std::string> configured;  ///< the variables it stands for
  Pip pip;
  std::vector<Finding>
      findings;  ///< settings that are wrong; the rest of the report is without them
  /// CUBIST_* variables that are set; values of those that hold secrets are left out.
  std::vector<std::pair<std::string, std::string>> environment;
};

DoctorReport make_doctor_report(const std::string& store_override);

}  // namespace cubist::tools
