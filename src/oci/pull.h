#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "oci/progress.h"
#include "oci/remote_bundle.h"
#include "oci/staged_bundle.h"

namespace cubist::oci {

struct PullOptions {
  ConnectOptions connect;
  Progress::Listener progress;
};

struct PullReport {
  std::size_t layers_total = 0;  ///< that are part of the file
  std::size_t layers_wanted = 0;
  std::size_t layers_present = 0;  ///< whole from an earlier run that was stopped
  std::uint64_t file_bytes = 0;
  HttpCounters http;
};

/// Brings pieces of the bundle file to their places in `file`: the head and the tail, and those
/// shards that are wanted. Several at once; each goes on where an earlier run was stopped, and is
/// held to its digest as a whole.
///
/// wanted  one for each shard of the image
/// errors  kNetwork; kIntegrity: a blob that is not what its digest says; kIo, kInterrupted
Result<PullReport> pull_pieces(const RemoteBundle& remote, StagedBundle& file,
                               const std::vector<bool>& wanted, Clients& clients,
                               const PullOptions& options);

/// Whether `file` is the whole bundle file, each piece held to its digest; asks nobody.
bool holds_all_pieces(const RemoteBundle& remote, const StagedBundle& file,
                      const PullOptions& options);

/// The bundle that was staged, of which pieces may be missing; those that come later are read from
/// where they are put. errors  kIntegrity: not the one that the config describes
Result<bundle::Bundle> open_staged(const RemoteBundle& remote,
                                   std::shared_ptr<const StagedBundle> file);

/// The bundle file, byte for byte as it was pushed, at `target`: there as a whole or not at all.
/// What a run that is stopped has brought lies in <target>.<8 digits>.part, from which the next one
/// goes on.
///
/// accept  asked with the whole bundle before it gets its name; may be empty
/// errors  also kInvalidArgument: something that is no regular file has that name; those of accept
Result<PullReport> pull_file(const RemoteBundle& remote, const std::string& target,
                             Clients& clients, const PullOptions& options,
                             const std::function<Status(const bundle::Bundle&)>& accept = {});

}  // namespace cubist::oci
