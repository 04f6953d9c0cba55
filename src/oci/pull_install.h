#pragma once

#include <functional>

#include "bundle/install.h"
#include "oci/pull.h"

namespace cubist::oci {

struct PulledIntoStore {
  PullReport pull;
  bundle::InstallReport install;
};

/// A bundle into a store, and its manifests behind it. The manifests are read and checked before
/// any kernel is asked for; those of a small bundle come meanwhile. Then the rest of the file
/// comes, and is kept as it is, or, with install.unpack, unpacked by bundle::install_kernels, where
/// shards of which the store has every kernel are not asked for. A file that is kept is held to the
/// digests of its layers; its kernels are hashed when they are used. Where no kernel is missing
/// nothing more is asked for. What a run that is stopped has brought lies in
/// <store>/tmp/<digest>.resume for a day.
///
/// accept  asked with the bundle once its manifests are checked; may be empty
/// errors  those of pull_pieces(), accept(), bundle::admit() and bundle::install()
Result<PulledIntoStore> pull_into_store(
    const RemoteBundle& remote, const Store& store, Clients& clients, const PullOptions& options,
    const bundle::InstallOptions& install,
    const std::function<Status(const bundle::Bundle&)>& accept = {});

}  // namespace cubist::oci
