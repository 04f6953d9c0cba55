#include "trust_options.h"

#include <optional>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "registry/store_layout.h"

namespace cubist::tools {
namespace {

/// What the one command of this process was given.
struct TrustFlags {
  std::vector<std::string> trusted_keys;
  std::string manifest_signatures;
  std::vector<std::string> revocations;
  bool accept_older_serial = false;
  std::string store;
  bool notes_serials = true;
};

TrustFlags& flags() {
  static TrustFlags given;
  return given;
}

std::optional<trust::Settings>& settings_in_place() {
  static std::optional<trust::Settings> settings;
  return settings;
}

}  // namespace

void add_trust_options(CLI::App& command) {
  constexpr const char* kGroup = "Trust (docs/signing.md)";
  command
      .add_option(
          "--trusted-key", flags().trusted_keys,
          "minisign public key (RW...) or .pub file whose signatures count; may be repeated. "
          "Default: CUBIST_TRUSTED_KEYS")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_option("--manifest-signatures", flags().manifest_signatures,
                  "What to do about a manifest that nobody signed: allow, warn or refuse. Default: "
                  "CUBIST_MANIFEST_SIGNATURES, else warn once a key is trusted")
      ->check(CLI::IsMember({"allow", "warn", "refuse"}))
      ->group(kGroup);
  command
      .add_option("--revocations", flags().revocations,
                  "Signed list of kernels that must not be used; may be repeated. Default: "
                  "CUBIST_REVOCATIONS")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_flag("--accept-older-serial", flags().accept_older_serial,
                "For once, accept manifests and lists older than those seen before")
      ->group(kGroup);
}

void add_store_option(CLI::App& command) {
  command.add_option("--store", flags().store,
                     "Folder of the store, where installed manifests are found by name");
}

void set_store_of_trust(const std::string& store) { flags().store = store; }

void note_no_serials() { flags().notes_serials = false; }

void set_trust_settings(trust::Settings settings) { settings_in_place() = std::move(settings); }

Result<trust::Settings> trust_settings() {
  if (settings_in_place()) return *settings_in_place();
  CUBIST_ASSIGN_OR_RETURN(trust::Settings settings, trust::settings_from_environment());
  if (!flags().trusted_keys.empty()) {
    settings.trusted_keys = flags().trusted_keys;
    settings.origins.trusted_keys = "--trusted-key";
  }
  if (!flags().revocations.empty()) {
    settings.revocations = flags().revocations;
    settings.origins.revocations = "--revocations";
  }
  if (!flags().manifest_signatures.empty()) {
    settings.manifest_signatures = trust::parse_policy(flags().manifest_signatures);
    settings.origins.manifest_signatures = "--manifest-signatures";
  }
  settings.accept_older_serial = flags().accept_older_serial;
  settings.notes_serials = flags().notes_serials;
  if (settings.trusted_keys.empty()) return settings;  // nothing to remember
  CUBIST_ASSIGN_OR_RETURN(const StoreOptions store, store_options_from_environment(flags().store));
  settings.state_folder = trust_state_folder(store.root);
  for (const std::string& layer : store.base_roots) {
    settings.lower_state_folders.push_back(trust_state_folder(layer));
  }
  return settings;
}

Result<trust::Trust*> trust_of_user() {
  static std::optional<trust::Trust> opened;
  if (!opened) {
    CUBIST_ASSIGN_OR_RETURN(trust::Settings settings, trust_settings());
    CUBIST_ASSIGN_OR_RETURN(opened, trust::Trust::open(std::move(settings)));
  }
  return &*opened;
}

Result<const trust::RevokedKernels*> revoked_kernels() {
  CUBIST_ASSIGN_OR_RETURN(const trust::Trust* trust, trust_of_user());
  return &trust->revoked();
}

}  // namespace cubist::tools
