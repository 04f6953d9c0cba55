#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cubist::config {

/// A user's configuration file: where manifests, stores and sources are, and whom to trust. All
/// keys may be missing.
///
///   {
///     "manifests": ["~/manifests"],          folders             CUBIST_MANIFESTS
///     "store": "/srv/cubist",                folder              CUBIST_STORE
///     "base_stores": ["/mnt/image/cubist"],  folders, read only  CUBIST_STORE_BASE
///     "sources": ["https://mirror/fmha/"]    as for --source     CUBIST_SOURCES
///     "trusted_keys": ["RW..."],             keys or .pub files  CUBIST_TRUSTED_KEYS
///     "manifest_signatures": "refuse",       a policy            CUBIST_MANIFEST_SIGNATURES
///     "key_statements": ["~/keys-2.json"],   files               CUBIST_KEY_STATEMENTS
///     "revocations": ["~/revoked.json"],     files               CUBIST_REVOCATIONS
///     "foreign_store": "warn"                a policy            CUBIST_FOREIGN_STORE
///   }
///
/// Each key is the default of the environment variable beside it, which is the default of a flag:
/// file < environment < flags.
struct Configuration {
  std::vector<std::string> manifests;
  std::string store;  ///< empty: not said
  std::vector<std::string> base_stores;
  std::vector<std::string> sources;
  std::vector<std::string> trusted_keys;  ///< public keys, or paths of .pub files
  std::string manifest_signatures;        ///< a policy; empty: not said
  std::vector<std::string> key_statements;
  std::vector<std::string> revocations;
  std::string foreign_store;  ///< a policy; empty: not said
  /// Where each key that the file has is, for messages: "config.json:3: /store".
  std::map<std::string, std::string, std::less<>> places;
};

/// Paths are absolute or start with "~/", which `home` replaces; so it does in sources and keys.
///
/// errors  kInvalidArgument: not written as above (the message has file and key), an unknown key, a
///         path that is neither, a policy that is none, or a text that its variable's list cannot
///         hold (a path with ':'; a source or key with white space)
Result<Configuration> parse_configuration(std::string_view text, std::string_view file_name,
                                          std::string_view home);

/// What can be read of a text, and everything that is wrong with it: a key with something wrong is
/// left out.
struct ReadConfiguration {
  Configuration configuration;
  std::vector<Error> complaints;
};
/// errors  kInvalidArgument: no JSON, or a key twice
Result<ReadConfiguration> read_configuration(std::string_view text, std::string_view file_name,
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
/// The same, with all that is wrong in it.
Result<ReadConfiguration> load_all_of_configuration(const ConfigurationPath& place);

/// A variable that stands for a key of the file.
struct EnvironmentValue {
  std::string name;
  std::string value;
  std::string origin;  ///< of the key, for messages: "config.json:3: /store"
};
std::vector<EnvironmentValue> as_environment(const Configuration& configuration);

/// CUBIST_SOURCES: sources separated by white space; empty if it is not set.
std::vector<std::string> sources_from_environment();

}  // namespace cubist::config
