#include "bundle/keep_bundle.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/file.h"
#include "bundle/verify_kernels.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"
#include "registry/store_use.h"

namespace cubist::bundle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlockBytes = 1 << 20;
constexpr auto kShowEvery = std::chrono::milliseconds(100);

Status copy(const Bundle& bundle, StagedFile& file, const std::atomic<bool>* cancel) {
  std::vector<std::uint8_t> block(kBlockBytes);
  for (std::uint64_t at = 0; at < bundle.file_bytes(); at += block.size()) {
    if (cancel != nullptr && *cancel) {
      return fail(StatusCode::kInterrupted, "stopped; nothing was installed");
    }
    block.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, bundle.file_bytes() - at)));
    CUBIST_RETURN_IF_ERROR(bundle.file().read(at, block));
    CUBIST_RETURN_IF_ERROR(file.write(block));
  }
  return {};
}

/// The bundle in `path`, if it is this one and every kernel in it is right.
Status check_copy(const Bundle& bundle, const std::string& path, const InstallOptions& options) {
  UniqueFd fd = open_in_store(path, kStoreFileDepth, O_RDONLY);
  if (!fd.valid()) return tl::unexpected<Error>(errno_error("cannot open", path, errno));
  // Under the name of what it is a copy of, which is what messages are to name.
  CUBIST_ASSIGN_OR_RETURN(auto file, file_access(bundle.file_name(), std::move(fd)));
  CUBIST_ASSIGN_OR_RETURN(const Bundle found, Bundle::open(std::move(file)));
  if (found.identity() != bundle.identity()) {
    return fail(StatusCode::kIntegrity, "'{}' changed while it was read", bundle.file_name());
  }
  InstallProgress progress;
  progress.kernels_total = found.description().kernels.size();
  progress.bytes_total = found.file_bytes();
  Clock::time_point shown{};
  return verify_kernels(found, options.threads, options.cancel, [&](std::size_t done) {
    const Clock::time_point now = Clock::now();
    if (!options.progress || now - shown < kShowEvery) return;
    shown = now;
    progress.kernels_done = done;
    progress.bytes_done =
        progress.bytes_total * done / std::max<std::size_t>(progress.kernels_total, 1);
    options.progress(progress);
  });
}

}  // namespace

Result<Supply> look_for_kernels(const Bundle& bundle, const Store& store, bool as_entries) {
  const std::vector<Kernel>& kernels = bundle.description().kernels;
  Supply supply;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    KernelRecord record;
    record.sha256 = kernels[i].sha256;
    record.size_bytes = kernels[i].size_bytes;
    CUBIST_ASSIGN_OR_RETURN(auto place, store.locate(record));
    if (!place || (as_entries && place->bundle != nullptr)) {
      supply.missing.push_back(i);
    } else {
      supply.places.insert(std::move(place->path));
    }
  }
  return supply;
}

Status keep_bundle(const Bundle& bundle, const Store& store, const InstallOptions& options,
                   InstallReport& report) {
  store.sweep();
  const std::string target = bundle_path(store.root(), bundle.identity());
  Status there = check_copy(bundle, target, options);
  if (!there && there.error().code() == StatusCode::kInterrupted) return there;
  CUBIST_ASSIGN_OR_RETURN(const Supply supply, look_for_kernels(bundle, store, false));
  const bool broken = !there && there.error().code() == StatusCode::kIntegrity;
  if (there) report.bundle_path = target;
  if (there || (supply.missing.empty() && !broken)) {
    record_use(store, there ? std::set<std::string>{target} : supply.places);
    report.kernels_present = bundle.description().kernels.size();
    return {};
  }
  const std::string staging = store.root() + "/tmp";
  CUBIST_RETURN_IF_ERROR(make_folders(staging, 1));
  CUBIST_RETURN_IF_ERROR(make_folders(bundle_folder(store.root()), 1));
  CUBIST_ASSIGN_OR_RETURN(StagedFile file, StagedFile::create(staging, kStoreFileDepth));
  CUBIST_RETURN_IF_ERROR(copy(bundle, file, options.cancel));
  CUBIST_RETURN_IF_ERROR(check_copy(bundle, file.path(), options));
  CUBIST_RETURN_IF_ERROR(file.make_read_only());
  CUBIST_RETURN_IF_ERROR(file.sync());
  CUBIST_RETURN_IF_ERROR(file.publish_over(target, kStoreFileDepth));
  CUBIST_RETURN_IF_ERROR(sync_folder(bundle_folder(store.root())));
  report_kept(bundle, supply.missing.size(), target, report);
  return {};
}

void report_kept(const Bundle& bundle, std::size_t missing, const std::string& path,
                 InstallReport& report) {
  report.kernels_installed = missing;
  report.kernels_present = bundle.description().kernels.size() - missing;
  report.installed_bytes = bundle.file_bytes();
  report.bundle_path = path;
}

}  // namespace cubist::bundle
