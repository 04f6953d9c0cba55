#pragma once

#include <atomic>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "bundle/install.h"
#include "command.h"

namespace cubist::tools {

struct BundleInstallArguments {
  std::string file;
  std::string store;
  std::string manifest_folder;
  std::string name;
  bool replace = false;
  bool unpack = false;
};

/// A store that is named is filled as a whole, so that it can be carried away; in the usual one,
/// what a layer below has already is not kept twice.
Result<Store> store_to_install_into(const std::string& root);

/// As the flags and the user's trust settings have it; without progress.
Result<bundle::InstallOptions> install_options(const BundleInstallArguments& arguments,
                                               const std::atomic<bool>* cancel);

/// errors  kInvalidArgument: a manifest of the bundle would be hidden by another that its name
///         means here already
Status check_no_name_is_hidden(const bundle::Bundle& bundle, const Store& store,
                               const bundle::InstallOptions& options);

struct InstalledBundle {
  std::string store;
  bundle::InstallReport report;
  double seconds = 0;
};
nlohmann::ordered_json installed_json(const InstalledBundle& installed);
void print_installed(const InstalledBundle& installed);

ExitCode run_bundle_install(const BundleInstallArguments& arguments, const CommonOptions& common);

}  // namespace cubist::tools
