#include "runtime/runtime.h"

#include <functional>

#include "manifest/parse.h"
#include "runtime/manifest_path.h"
#include "runtime/selected.h"

namespace cubist::runtime {
namespace {

struct Place {
  const Manifest* manifest = nullptr;
  const Pack* pack = nullptr;
};

/// Where a record of these manifests belongs, by its address.
Place place_of(const std::vector<Manifest>& manifests, const KernelRecord& record) {
  const std::less_equal<const KernelRecord*> not_after;
  for (const Manifest& manifest : manifests) {
    for (const Pack& pack : manifest.packs) {
      const KernelRecord* first = pack.kernels.data();
      if (not_after(first, &record) && !not_after(first + pack.kernels.size(), &record)) {
        return {&manifest, &pack};
      }
    }
  }
  return {};
}

template <class Visit>
void for_each_kernel(const std::vector<Manifest>& manifests, Visit visit) {
  for (const Manifest& manifest : manifests) {
    for (const Pack& pack : manifest.packs) {
      for (const KernelRecord& record : pack.kernels) visit(record);
    }
  }
}

}  // namespace

Runtime::Runtime(RuntimeOptions options, Store store)
    : options_(std::move(options)), cubins_(std::move(store), options_.offline) {}

Runtime::~Runtime() = default;

Result<std::shared_ptr<Runtime>> Runtime::open(const RuntimeOptions& options) {
  if (options.manifests.empty()) {
    return fail(StatusCode::kInvalidArgument, "no manifest is given; at least one is needed");
  }
  CUBIST_ASSIGN_OR_RETURN(Store store, Store::open(options.store_dir));
  std::shared_ptr<Runtime> runtime(new Runtime(options, std::move(store)));
  for (const std::string& name : options.manifests) {
    CUBIST_ASSIGN_OR_RETURN(const std::string path, find_manifest(name));
    CUBIST_ASSIGN_OR_RETURN(Manifest manifest, load_manifest(path));
    runtime->manifests_.push_back(std::move(manifest));
  }
  CUBIST_RETURN_IF_ERROR(runtime->build_table());
  return runtime;
}

Status Runtime::build_table() {
  std::vector<selector::PackView> views;
  for (const Manifest& manifest : manifests_) {
    for (const Pack& pack : manifest.packs) {
      views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
    }
  }
  CUBIST_ASSIGN_OR_RETURN(kernels_, selector::KernelTable::build(views));
  return {};
}

selector::SelectOptions Runtime::select_options() const {
  selector::SelectOptions options;
  options.strict = options_.strict;
  return options;
}

std::size_t Runtime::num_kernels() const {
  std::size_t count = 0;
  for_each_kernel(manifests_, [&](const KernelRecord&) { ++count; });
  return count;
}

Result<std::unique_ptr<Selected>> Runtime::select(const AttentionProblem& problem,
                                                  const DeviceProfile& device) {
  CUBIST_ASSIGN_OR_RETURN(const Selection selection,
                          selector::select(kernels_, problem, device, select_options()));
  selections_.fetch_add(1, std::memory_order_relaxed);
  if (selection.best().fallback != FallbackReason::kNone) {
    fallbacks_.fetch_add(1, std::memory_order_relaxed);
  }
  return std::make_unique<Selected>(shared_from_this(), problem, device, selection);
}

Result<const KernelRecord*> Runtime::find_kernel(std::string_view name_or_sha256) const {
  const std::optional<Sha256Digest> digest = Sha256Digest::parse(name_or_sha256);
  const KernelRecord* found = nullptr;
  bool ambiguous = false;
  for_each_kernel(manifests_, [&](const KernelRecord& record) {
    if (digest ? record.sha256 != *digest : record.name != name_or_sha256) return;
    // One artifact may be listed more than once; another of the same name is another kernel.
    ambiguous = ambiguous || (found != nullptr && found->sha256 != record.sha256);
    if (found == nullptr) found = &record;
  });
  if (ambiguous) {
    return fail(StatusCode::kInvalidArgument,
                "several kernels with different bytes are called '{}'; give the sha256",
                name_or_sha256);
  }
  if (found != nullptr) return found;
  return fail(StatusCode::kNotFound, "no kernel of the {} in the opened manifests has the {} '{}'",
              num_kernels(), digest ? "sha256" : "name", name_or_sha256);
}

Result<VerifiedCubin> Runtime::cubin(const KernelRecord& record) const {
  const Place place = place_of(manifests_, record);
  if (place.pack == nullptr) {
    return fail(StatusCode::kInternal, "kernel '{}' is of another runtime", record.name);
  }
  return cubins_.get(*place.manifest, *place.pack, record);
}

Status Runtime::fetch(std::span<const KernelRecord* const> records) const {
  std::vector<const KernelRecord*> wanted(records.begin(), records.end());
  if (wanted.empty()) {
    for_each_kernel(manifests_, [&](const KernelRecord& record) { wanted.push_back(&record); });
  }
  // Relative sources start at their manifest, so each manifest is a run of its own.
  std::vector<std::vector<FetchItem>> runs(manifests_.size());
  FetchProgress before;
  for (const KernelRecord* record : wanted) {
    const Place place = place_of(manifests_, *record);
    if (place.pack == nullptr) {
      return fail(StatusCode::kInternal, "kernel '{}' is of another runtime", record->name);
    }
    runs[static_cast<std::size_t>(place.manifest - manifests_.data())].push_back(
        {place.pack, record});
    before.bytes_total += record->size_bytes;
  }
  before.files_total = wanted.size();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].empty()) continue;
    CUBIST_RETURN_IF_ERROR(cubins_.fetch(manifests_[i], runs[i], before));
    before.files_done += runs[i].size();
    for (const FetchItem& item : runs[i]) before.bytes_done += item.record->size_bytes;
  }
  return {};
}

Result<launcher::Launcher*> Runtime::launcher() {
  if (launcher::Launcher* made = launcher_.load(std::memory_order_acquire)) return made;
  const std::lock_guard lock(launcher_mutex_);
  if (owned_launcher_ != nullptr) return owned_launcher_.get();
  CUBIST_ASSIGN_OR_RETURN(std::shared_ptr<driver::Driver> driver, driver::Driver::open());
  owned_launcher_ = std::make_unique<launcher::Launcher>(
      std::move(driver), [this](const KernelRecord& record) { return cubin(record); });
  launcher_.store(owned_launcher_.get(), std::memory_order_release);
  return owned_launcher_.get();
}

launcher::LoadCounters Runtime::load_counters() const {
  const launcher::Launcher* made = launcher_.load(std::memory_order_acquire);
  return made == nullptr ? launcher::LoadCounters{} : made->counters();
}

}  // namespace cubist::runtime
