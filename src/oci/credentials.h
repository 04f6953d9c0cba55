#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "oci/reference.h"

namespace cubist::oci {

/// Who one is at a registry. Never part of a message.
struct Credentials {
  std::string user;
  std::string password;
  std::string identity_token;  ///< of OAuth2: exchanged for tokens in place of a password
  std::string origin;  ///< the file or helper they are from, for messages; empty: there are none

  bool empty() const { return password.empty() && identity_token.empty(); }
};

/// What a credentials file of docker, podman, skopeo or Kubernetes says (a .dockerconfigjson is
/// one):
///
///   { "auths": { "registry.example.com":     { "auth": "<base64 of user:password>" },
///                "registry.example.com/team": { "username": "u", "password": "p" },
///                "other.example.com":        { "auth": "...", "identitytoken": "..." } },
///     "credHelpers": { "ecr.example.com": "ecr-login" },
///     "credsStore": "secretservice" }
///
/// Other keys are passed over.
struct CredentialFile {
  std::map<std::string, Credentials> auths;    ///< by host, or host and beginning of a repository
  std::map<std::string, std::string> helpers;  ///< host -> X of docker-credential-X
  std::string store;                           ///< X of docker-credential-X for all others
};

/// errors  kInvalidArgument: "FILE: key: what is wrong", without what stands there
Result<CredentialFile> parse_credential_file(std::string_view text, std::string_view file_name);

/// The entry for a repository: the longest key that is the host and a beginning of the repository,
/// else a host's own, with or without the "https://" and path that docker writes. Null: none.
const Credentials* find_entry(const CredentialFile& file, const Reference& reference);

/// What `docker-credential-X get` prints. errors  kInvalidArgument, without what stands there
Result<Credentials> parse_helper_answer(std::string_view text, std::string_view helper);

/// Looks in REGISTRY_AUTH_FILE alone if it is set, else in $XDG_RUNTIME_DIR/containers/auth.json,
/// ~/.config/containers/auth.json ($XDG_CONFIG_HOME) and ~/.docker/config.json ($DOCKER_CONFIG), in
/// that order; the first that knows the host counts. May run a credential helper.
///
/// errors  kInvalidArgument: a file that is none; kIo: one that cannot be read, a helper that fails
Result<Credentials> find_credentials(const Reference& reference);

}  // namespace cubist::oci
