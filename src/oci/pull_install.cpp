#include "oci/pull_install.h"

#include <fcntl.h>

#include <algorithm>

#include "base/log.h"
#include "base/threads.h"
#include "bundle/install_kernels.h"
#include "bundle/keep_bundle.h"
#include "bundle/verify_kernels.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"
#include "registry/store_use.h"

namespace cubist::oci {
namespace {

// Less than what a connection brings while a manifest of thousands of kernels is read.
constexpr std::uint64_t kSmallBytes = 16ULL << 20;

/// Shards that hold one of these kernels; all where the registry's index is not the bundle's.
std::vector<bool> shards_of(const RemoteBundle& remote, const bundle::Bundle& opened,
                            const std::vector<std::size_t>& kernels) {
  std::vector<bool> wanted(remote.image.shards.size());
  for (const std::size_t kernel : kernels) {
    const Place* place = remote.index.find(opened.description().kernels[kernel].sha256);
    if (place == nullptr) return std::vector<bool>(wanted.size(), true);
    wanted[place->shard] = true;
  }
  return wanted;
}

class StorePull {
 public:
  StorePull(const RemoteBundle& remote, const Store& store, std::shared_ptr<StagedBundle> file,
            Clients& clients, const PullOptions& options, const bundle::InstallOptions& install,
            const std::function<Status(const bundle::Bundle&)>& accept)
      : remote_(remote),
        store_(store),
        file_(std::move(file)),
        clients_(clients),
        options_(options),
        install_(install),
        accept_(accept) {}

  /// Head and tail are enough to know whether the rest is welcome.
  Result<PulledIntoStore> run() {
    PulledIntoStore done;
    const std::vector<bool> none(remote_.image.shards.size(), false);
    CUBIST_RETURN_IF_ERROR(pull(none, done));
    CUBIST_ASSIGN_OR_RETURN(const bundle::Bundle opened, open_staged(remote_, file_));
    CUBIST_ASSIGN_OR_RETURN(const bundle::Supply supply,
                            bundle::look_for_kernels(opened, store_, install_.unpack));
    CUBIST_ASSIGN_OR_RETURN(const bundle::Admission admission, admit(opened, supply.missing, done));
    Status brought;
    Result<std::vector<bundle::StagedManifest>> staged;
    do_both(
        [&] {
          brought = install_.unpack ? bring_entries(opened, supply.missing, done)
                                    : bring_file(opened, supply, done);
        },
        [&] { staged = bundle::stage_manifests(admission); });
    CUBIST_RETURN_IF_ERROR(brought);
    if (!staged) return forward_error(staged);
    CUBIST_RETURN_IF_ERROR(
        bundle::put_manifests(*std::move(staged), admission, install_, done.install));
    return done;
  }

 private:
  /// Whether the bundle may come in. A small one that is wanted comes meanwhile: its manifests take
  /// longer to check than its kernels to bring, and nothing of it is used before they were.
  Result<bundle::Admission> admit(const bundle::Bundle& opened,
                                  const std::vector<std::size_t>& missing, PulledIntoStore& done) {
    const bool meanwhile = !missing.empty() && remote_.config.file_bytes <= kSmallBytes;
    Status brought;
    Result<bundle::Admission> admission = bundle::Admission();
    do_both([&] { admission = look_at(opened); },
            [&] {
              if (!meanwhile) return;
              brought = pull(shards_of(remote_, opened, missing), done);
              // It has to be durable later: by then little is left to write.
              if (brought) brought = file_->sync();
            });
    if (!admission) return admission;
    CUBIST_RETURN_IF_ERROR(brought);
    return admission;
  }

  Result<bundle::Admission> look_at(const bundle::Bundle& opened) const {
    CUBIST_ASSIGN_OR_RETURN(bundle::Admission admission, bundle::admit(opened, store_, install_));
    if (accept_) CUBIST_RETURN_IF_ERROR(accept_(opened));
    return admission;
  }

  /// A piece counts as present only if it was so before the first call.
  Status pull(const std::vector<bool>& wanted, PulledIntoStore& done) {
    CUBIST_ASSIGN_OR_RETURN(done.pull, pull_pieces(remote_, *file_, wanted, clients_, options_));
    done.pull.layers_present -= fetched_;
    fetched_ = done.pull.layers_wanted - done.pull.layers_present;
    return {};
  }

  Status bring_entries(const bundle::Bundle& opened, const std::vector<std::size_t>& missing,
                       PulledIntoStore& done) {
    const std::vector<bool> wanted = shards_of(remote_, opened, missing);
    CUBIST_RETURN_IF_ERROR(pull(wanted, done));
    Status installed = bundle::install_kernels(opened, store_, install_, done.install);
    const bool all = std::find(wanted.begin(), wanted.end(), false) == wanted.end();
    if (installed || all || installed.error().code() != StatusCode::kIntegrity) return installed;
    // An entry of the right size with wrong bytes counts as missing only once it is hashed.
    log(LogLevel::kInfo, "{}; the other shards are brought too", installed.error().message());
    CUBIST_RETURN_IF_ERROR(pull(std::vector<bool>(wanted.size(), true), done));
    return bundle::install_kernels(opened, store_, install_, done.install);
  }

  Status bring_file(const bundle::Bundle& opened, const bundle::Supply& supply,
                    PulledIntoStore& done) {
    const std::string target = bundle_path(store_.root(), opened.identity());
    const auto there =
        StagedBundle::open_finished(target, kStoreFileDepth, remote_.config.file_bytes);
    const bool whole = there != nullptr && holds_all_pieces(remote_, *there, options_);
    if (whole) done.install.bundle_path = target;
    if (whole || (supply.missing.empty() && there == nullptr)) {
      record_use(store_, whole ? std::set<std::string>{target} : supply.places);
      done.install.kernels_present = opened.description().kernels.size();
      file_->remove();
      return {};
    }
    CUBIST_RETURN_IF_ERROR(pull(std::vector<bool>(remote_.image.shards.size(), true), done));
    CUBIST_RETURN_IF_ERROR(check_replacement(opened, target));
    CUBIST_RETURN_IF_ERROR(make_folders(bundle_folder(store_.root()), 1));
    CUBIST_RETURN_IF_ERROR(file_->publish(target, kStoreFileDepth));
    // Not before: who is killed in between must be able to go on writing.
    CUBIST_RETURN_IF_ERROR(file_->make_read_only());
    bundle::report_kept(opened, supply.missing.size(), target, done.install);
    return {};
  }

  /// A bundle that says the same of itself and is another file: one of the two is not what it says,
  /// and it must not be the one that stays.
  Status check_replacement(const bundle::Bundle& opened, const std::string& target) const {
    if (!open_in_store(target, kStoreFileDepth, O_RDONLY).valid()) return {};
    Status good = bundle::verify_kernels(opened, install_.threads, options_.connect.cancel, {});
    if (good || good.error().code() != StatusCode::kIntegrity) return good;
    return fail(StatusCode::kIntegrity,
                "{}; '{}', which says the same of itself, was left as it is",
                good.error().message(), target);
  }

  const RemoteBundle& remote_;
  const Store& store_;
  std::shared_ptr<StagedBundle> file_;
  Clients& clients_;
  const PullOptions& options_;
  const bundle::InstallOptions& install_;
  const std::function<Status(const bundle::Bundle&)>& accept_;
  std::size_t fetched_ = 0;
};

}  // namespace

Result<PulledIntoStore> pull_into_store(
    const RemoteBundle& remote, const Store& store, Clients& clients, const PullOptions& options,
    const bundle::InstallOptions& install,
    const std::function<Status(const bundle::Bundle&)>& accept) {
  const std::string folder = store.root() + "/tmp";
  CUBIST_RETURN_IF_ERROR(make_folders(folder, 1));
  CUBIST_ASSIGN_OR_RETURN(
      const std::shared_ptr<StagedBundle> file,
      StagedBundle::open(fmt::format("{}/{}.resume", folder, remote.digest.hex()),
                         remote.config.file_bytes, options.connect.cancel, kStoreFileDepth));
  store.sweep();
  auto done = StorePull(remote, store, file, clients, options, install, accept).run();
  const bool worth_keeping = !done && (done.error().code() == StatusCode::kNetwork ||
                                       done.error().code() == StatusCode::kInterrupted);
  if (!worth_keeping) file->remove();
  return done;
}

}  // namespace cubist::oci
