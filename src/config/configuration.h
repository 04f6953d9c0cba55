#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cubist::config {

/// A user's configuration file: where manifests, stores and sources are. All keys may be missing.
///
///   {
///     "manifests": ["~/manifests"],          folders             CUBIST_MANIFESTS
///     "store": "/srv/cubist",                folder              CUBIST_STORE
///     "base_stores": ["/mnt/image/cubist"],  folders, read only  CUBIST_STORE_BASE
///     "sources": ["https://mirror/fmha/"]    as for --source     CUBIST_SOURCES
///   }
///
/// Each key is the default of the environment variable beside it, which is the default of a flag:
/// file < environment < flags.
struct Configuration {
  std::vector<std::string> manifests;
  std::string store;  ///< empty: not said
  std::vector<std::string> base_stores;
  std::vector<std::string> sources;
};

/// Folders are absolute or start with "~/", which `home` replaces; so it does in sources.
///
/// errors  kInvalidArgument: not written as above (the message has file and key), an unknown key, a
///         folder that is neither, or one that its variable's list cannot hold (with ':'; a source
///         with white space)
Result<Configuration> parse_configuration(std::string_view text, std::string_view file_name,
                                          std::string_view home);

struct ConfigurationPath {
  std::string path;       ///< empty: no file is to be read
  bool required = false;  ///< it was named, so it must be there
};

/// CUBIST_CONFIG where it is set (empty: no file), else cubist/config.json in $XDG_CONFIG_HOME,
/// else in ~/.config.
ConfigurationPath configuration_path();

/// The configuration there; empty without a file.
/// errors  those of parse_configuration; kIo; kNotFound: CUBIST_CONFIG names a file that is not
/// there
Result<Configuration> load_configuration(const ConfigurationPath& place);

/// The variables that stand for what the file says: name and value.
std::vector<std::pair<std::string, std::string>> as_environment(const Configuration& configuration);

/// CUBIST_SOURCES: sources separated by white space; empty if it is not set.
std::vector<std::string> sources_from_environment();

}  // namespace cubist::config
