#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist {

/// Where a store lies. Only `root` is ever written; the base layers are looked into after it, in
/// order.
struct StoreOptions {
  std::string root;
  std::vector<std::string> base_roots;
};

/// Root: `root_override`, else CUBIST_STORE, else $XDG_CACHE_HOME/cubist, else ~/.cache/cubist.
/// Base layers: CUBIST_STORE_BASE, folders separated by ":".
/// errors  kInvalidArgument: none of these is set and the user has no home folder
Result<StoreOptions> store_options_from_environment(std::string_view root_override = {});

/// Steps of an entry's path below the root, and of a file's in tmp/, index/ or bundles/.
inline constexpr int kEntryDepth = 3;
inline constexpr int kStoreFileDepth = 2;

/// <root>/sha256/ab/<64 hex digits>.cubin
std::string entry_path(std::string_view root, const Sha256Digest& digest);
/// The part of that below the root; also what a store offers when it is used as a source.
std::string entry_relative_path(const Sha256Digest& digest);
/// <root>/manifests: those that bundles brought along.
std::string installed_manifest_folder(std::string_view root);
/// <root>/bundles: bundle files that kernels are served from.
std::string bundle_folder(std::string_view root);
/// <root>/bundles/<64 hex digits>.zip. identity  SHA-256 of its bundle.json
std::string bundle_path(std::string_view root, const Sha256Digest& identity);
/// Whether a file in that folder is called as a bundle is.
bool is_bundle_name(std::string_view file_name);
/// <root>/state: the highest serials that users saw signed.
std::string trust_state_folder(std::string_view root);
/// Folders of a store that its owner alone should be able to write.
const std::vector<std::string>& store_folders();
/// The digest an entry's file name stands for; empty if it is no entry's name.
std::optional<Sha256Digest> parse_entry_name(std::string_view file_name);

}  // namespace cubist
