#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trust/policy.h"

namespace cubist::trust {

/// What each setting came from, as messages name it: a variable, a line of a file, a flag.
struct Origins {
  std::string trusted_keys = "trusted_keys";
  std::string manifest_signatures = "manifest_signatures";
  std::string key_statements = "key_statements";
  std::string revocations = "revocations";
  std::string foreign_store = "foreign_store";
};

/// Whom to trust, as the user has it (docs/signing.md). The default trusts as the manifests come.
struct Settings {
  /// Public keys: lines "RW...", or files (ending in ".pub", or with a "/" and not beginning so).
  std::vector<std::string> trusted_keys;
  /// About manifests without a signature; nothing: warn once a key is trusted, else allow.
  std::optional<Policy> manifest_signatures;
  std::vector<std::string> key_statements;  ///< files, each with its .minisig
  std::vector<std::string> revocations;     ///< files, each with its .minisig
  Policy foreign_store = Policy::kWarn;     ///< about stores that others can write
  bool accept_older_serial = false;         ///< for this once; what was seen stays noted
  bool notes_serials = true;                ///< false: looks at what was seen, and notes nothing
  /// Where the highest serials seen are kept; empty: nowhere, every run sees the world anew.
  std::string state_folder;
  /// Those of stores below, which are read too and never written.
  std::vector<std::string> lower_state_folders;
  Origins origins;
};

/// CUBIST_TRUSTED_KEYS (separated by white space), CUBIST_MANIFEST_SIGNATURES,
/// CUBIST_KEY_STATEMENTS and CUBIST_REVOCATIONS (separated by ":"), CUBIST_FOREIGN_STORE.
/// errors  kInvalidArgument: a policy that is none; names what set it
Result<Settings> settings_from_environment();

}  // namespace cubist::trust
