#pragma once

#include <functional>

#include "bundle/install.h"
#include "oci/pull.h"

namespace cubist::oci {

struct PulledIntoStore {
  PullReport pull;
  bundle::InstallReport install;
};

/// A bundle's kernels into a store, and its manifests behind them, as bundle::install does it. The
/// manifests are read and checked before any kernel is asked for, and shards of which the store has
/// every kernel are not asked for at all. What a run that is stopped has brought lies in
/// <store>/tmp/<digest>.resume for a day.
///
/// accept  asked with the bundle before any kernel is; may be empty
/// errors  those of pull_pieces(), accept() and bundle::install()
Result<PulledIntoStore> pull_into_store(
    const RemoteBundle& remote, const Store& store, Clients& clients, const PullOptions& options,
    const bundle::InstallOptions& install,
    const std::function<Status(const bundle::Bundle&)>& accept = {});

}  // namespace cubist::oci
