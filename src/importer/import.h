#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "importer/file_tree.h"
#include "importer/report.h"
#include "manifest/manifest.h"

namespace cubist {

struct ImportOptions {
  std::string artifact;  ///< part of the path of the artifact to take where a tree has several
  std::string version;   ///< of the release, where the tree does not say
  /// Instead of what the release is known by; the manifest's rules say what goes together.
  std::optional<HeuristicRevision> revision;
  std::optional<ParamLayout> param_layout;
  /// Reads every cubin: digest, architecture, entry, threads, shared memory, parameter bytes.
  bool deep = false;
  unsigned threads = 1;  ///< for deep; more than one only if the tree allows it
  const std::atomic<bool>* cancel = nullptr;  ///< once true, deep ends with kInterrupted
  /// Files read and files in all; called by one thread at a time.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

struct Import {
  Manifest manifest;  ///< passes validate_manifest
  ImportReport report;
};

/// Makes a manifest of the FMHA kernels of a flashinfer-cubin wheel (or a folder with its files):
/// one pack a metadata table, rows in the table's order. Rows whose identity is in doubt are left
/// out; every disagreement is in the report. Releases whose selection rules are not known become
/// packs of revision "none".
///
/// errors  kNotFound: no FMHA artifact; kManifestInvalid: a metadata header, checksums.txt or the
///         resulting manifest breaks its rules (nothing is imported); whatever reading fails with
Result<Import> import_flashinfer(const FileTree& tree, const ImportOptions& options = {});

}  // namespace cubist
