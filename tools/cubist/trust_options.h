#pragma once

#include <string>

#include <CLI/App.hpp>

#include "base/result.h"
#include "trust/trust.h"

namespace cubist::tools {

/// --trusted-key, --manifest-signatures, --revocations and --accept-older-serial, on every command
/// that opens a manifest. A flag stands in place of its variable.
void add_trust_options(CLI::App& command);

/// --store on a command that needs a store only for the manifests installed there and the serials
/// it remembers; main() has the flag stand for CUBIST_STORE.
void add_store_option(CLI::App& command);

/// The store the command was given with --store, whose memory of serials counts; to be told before
/// trust() is asked for. Empty: the environment's.
void set_store_of_trust(const std::string& store);

/// Makes trust() read the serials that were seen, but note none: for commands that write nothing.
void note_no_serials();

/// As the configuration, the environment and the flags have it.
/// errors  kInvalidArgument: a policy that is none
Result<trust::Settings> trust_settings();

/// These stand in place of what file, environment and flags say; to be told before trust() is asked
/// for.
void set_trust_settings(trust::Settings settings);

/// Keys, statements and lists of these settings, opened at the first call.
/// errors  those of Trust::open
Result<trust::Trust*> trust_of_user();

/// The kernels its lists revoke.
Result<const trust::RevokedKernels*> revoked_kernels();

}  // namespace cubist::tools
