#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "filter_options.h"
#include "manifest/manifest.h"
#include "registry/fetch.h"

namespace cubist::tools {

/// Flags that say what goes into a bundle.
struct BundleSelection {
  std::vector<std::string> manifests;
  std::vector<std::string> kernels;  ///< names or digests
  std::string working_set;
  bool all = false;
  FilterArguments filter;
};

/// A manifest and what of it is wanted.
struct SelectedManifest {
  std::string path;
  std::string text;  ///< byte for byte
  std::optional<std::string> signature;
  std::unique_ptr<Manifest> manifest;
  std::vector<FetchItem> items;  ///< point into `manifest`
};

/// The kernels that are named or in the working set, or else all, less those that no filter lets
/// through; manifests that none of them is in are left out.
///
/// errors  kInvalidArgument: nothing is asked for; kNotFound: a kernel that no manifest has, or
///         none left; those of opening manifests and of find_set_items(); kUntrusted: one was
///         revoked
Result<std::vector<SelectedManifest>> select_for_bundle(const BundleSelection& selection);

}  // namespace cubist::tools
