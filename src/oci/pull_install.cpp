#include "oci/pull_install.h"

#include <algorithm>

#include "base/log.h"
#include "registry/staged_file.h"

namespace cubist::oci {
namespace {

/// Shards with a kernel that no layer of the store has, judged by size.
Result<std::vector<bool>> shards_with_news(const RemoteBundle& remote, const Store& store) {
  std::vector<bool> wanted(remote.image.shards.size());
  for (const Place& place : remote.index.kernels) {
    if (wanted[place.shard]) continue;
    KernelRecord record;
    record.sha256 = place.sha256;
    record.size_bytes = place.size_bytes;
    CUBIST_ASSIGN_OR_RETURN(const std::optional<std::string> found, store.find(record));
    wanted[place.shard] = !found;
  }
  return wanted;
}

class StorePull {
 public:
  StorePull(const RemoteBundle& remote, const Store& store, StagedBundle& file, Clients& clients,
            const PullOptions& options, const bundle::InstallOptions& install,
            const std::function<Status(const bundle::Bundle&)>& accept)
      : remote_(remote),
        store_(store),
        file_(file),
        clients_(clients),
        options_(options),
        install_(install),
        accept_(accept) {}

  Result<PulledIntoStore> run() {
    CUBIST_RETURN_IF_ERROR(check());
    CUBIST_ASSIGN_OR_RETURN(const std::vector<bool> wanted, shards_with_news(remote_, store_));
    auto done = bring(wanted);
    const bool all = std::find(wanted.begin(), wanted.end(), false) == wanted.end();
    if (done || all || done.error().code() != StatusCode::kIntegrity) return done;
    // An entry of the right size with wrong bytes counts as missing only once it is hashed.
    log(LogLevel::kInfo, "{}; the other shards are brought too", done.error().message());
    return bring(std::vector<bool>(wanted.size(), true));
  }

 private:
  /// Head and tail are enough to know whether the rest is welcome.
  Status check() {
    const std::vector<bool> none(remote_.image.shards.size(), false);
    CUBIST_ASSIGN_OR_RETURN(const PullReport report,
                            pull_pieces(remote_, file_, none, clients_, options_));
    fetched_before_ = report.layers_wanted - report.layers_present;
    CUBIST_ASSIGN_OR_RETURN(const bundle::Bundle opened, open_staged(remote_, file_));
    CUBIST_RETURN_IF_ERROR(bundle::check_manifests(opened, install_.checks));
    return accept_ ? accept_(opened) : Status();
  }

  Result<PulledIntoStore> bring(const std::vector<bool>& wanted) {
    PulledIntoStore done;
    CUBIST_ASSIGN_OR_RETURN(done.pull, pull_pieces(remote_, file_, wanted, clients_, options_));
    done.pull.layers_present -= fetched_before_;
    CUBIST_ASSIGN_OR_RETURN(const bundle::Bundle opened, open_staged(remote_, file_));
    CUBIST_ASSIGN_OR_RETURN(done.install, bundle::install(opened, store_, install_));
    return done;
  }

  const RemoteBundle& remote_;
  const Store& store_;
  StagedBundle& file_;
  Clients& clients_;
  const PullOptions& options_;
  const bundle::InstallOptions& install_;
  const std::function<Status(const bundle::Bundle&)>& accept_;
  std::size_t fetched_before_ = 0;  ///< of head and tail, by check()
};

}  // namespace

Result<PulledIntoStore> pull_into_store(
    const RemoteBundle& remote, const Store& store, Clients& clients, const PullOptions& options,
    const bundle::InstallOptions& install,
    const std::function<Status(const bundle::Bundle&)>& accept) {
  const std::string folder = store.root() + "/tmp";
  CUBIST_RETURN_IF_ERROR(make_folders(folder));
  CUBIST_ASSIGN_OR_RETURN(
      const std::shared_ptr<StagedBundle> file,
      StagedBundle::open(fmt::format("{}/{}.resume", folder, remote.digest.hex()),
                         remote.config.file_bytes, options.connect.cancel));
  store.sweep();
  auto done = StorePull(remote, store, *file, clients, options, install, accept).run();
  const bool worth_keeping = !done && (done.error().code() == StatusCode::kNetwork ||
                                       done.error().code() == StatusCode::kInterrupted);
  if (!worth_keeping) file->remove();
  return done;
}

}  // namespace cubist::oci
