#include "runtime/runtime.h"

#include <algorithm>
#include <functional>

#include "base/log.h"
#include "launcher/preconditions.h"
#include "model/derived_problem.h"
#include "runtime/manifest_path.h"
#include "runtime/param_bytes.h"
#include "runtime/selected.h"
#include "runtime/trusted_manifest.h"

namespace cubist::runtime {
namespace {

/// The pack of a manifest that has a record at this address; null: none.
const Pack* pack_of(const Manifest& manifest, const KernelRecord& record) {
  const std::less_equal<const KernelRecord*> not_after;
  for (const Pack& pack : manifest.packs) {
    const KernelRecord* first = pack.kernels.data();
    if (not_after(first, &record) && !not_after(first + pack.kernels.size(), &record)) return &pack;
  }
  return nullptr;
}

bool has_aux_kernels(const Manifest& manifest) {
  return std::any_of(manifest.packs.begin(), manifest.packs.end(),
                     [](const Pack& pack) { return pack.family == KernelFamily::kCubistAux; });
}

template <class Visit>
void for_each_kernel(const std::vector<Manifest>& manifests, Visit visit) {
  for (const Manifest& manifest : manifests) {
    for (const Pack& pack : manifest.packs) {
      for (const KernelRecord& record : pack.kernels) visit(record);
    }
  }
}

/// Whoever asks for everything gets less than that.
void warn_of_revoked(std::size_t count, std::string_view what) {
  if (count == 0) return;
  log(LogLevel::kWarning, "{} kernels of the manifests are revoked, and not {}", count, what);
}

}  // namespace

Runtime::Runtime(RuntimeOptions options, Store store)
    : options_(std::move(options)), cubins_(std::move(store), options_.offline) {}

Runtime::~Runtime() = default;

Result<std::shared_ptr<Runtime>> Runtime::open(const RuntimeOptions& options) {
  if (options.manifests.empty()) {
    return fail(StatusCode::kInvalidArgument, "no manifest is given; at least one is needed");
  }
  CUBIST_ASSIGN_OR_RETURN(Store store, Store::open(options.store_dir, options.trust.foreign_store,
                                                   options.trust.origins.foreign_store));
  std::shared_ptr<Runtime> runtime(new Runtime(options, std::move(store)));
  trust::Settings settings = options.trust;
  if (settings.state_folder.empty()) {
    const std::vector<std::string> layers = runtime->store().layers();
    settings.state_folder = trust_state_folder(layers.front());
    for (std::size_t i = 1; i < layers.size(); ++i) {
      settings.lower_state_folders.push_back(trust_state_folder(layers[i]));
    }
  }
  CUBIST_ASSIGN_OR_RETURN(trust::Trust trust, trust::Trust::open(std::move(settings)));
  for (const std::string& name : options.manifests) {
    CUBIST_ASSIGN_OR_RETURN(const std::string path, find_manifest(name, options.store_dir));
    CUBIST_ASSIGN_OR_RETURN(TrustedManifest opened,
                            load_trusted_manifest(path, trust, runtime->store()));
    runtime->manifests_.push_back(std::move(opened.manifest));
  }
  runtime->revoked_ = trust.revoked();
  CUBIST_RETURN_IF_ERROR(runtime->build_table());
  CUBIST_RETURN_IF_ERROR(runtime->open_aux(trust));
  return runtime;
}

Status Runtime::open_aux(trust::Trust& trust) {
  const bool given = std::any_of(manifests_.begin(), manifests_.end(), has_aux_kernels);
  if (!given) {
    // Without it everything works that needs no such kernel; what needs one says so.
    if (const auto path = find_manifest("cubist-aux", options_.store_dir)) {
      CUBIST_ASSIGN_OR_RETURN(TrustedManifest opened, load_trusted_manifest(*path, trust, store()));
      aux_manifests_.push_back(std::move(opened.manifest));
    }
  }
  aux_ = std::make_unique<AuxLauncher>(given ? manifests_ : aux_manifests_);
  return {};
}

Status Runtime::build_table() {
  std::vector<selector::PackView> views;
  for (const Manifest& manifest : manifests_) {
    for (const Pack& pack : manifest.packs) {
      views.push_back({pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels});
    }
  }
  const std::vector<selector::BarredKernel> barred = barred_kernels(revoked_);
  CUBIST_ASSIGN_OR_RETURN(kernels_, selector::KernelTable::build(views, barred));
  if (options_.overrides.empty()) return {};
  CUBIST_ASSIGN_OR_RETURN(overrides::RuleFile rules, overrides::load_rules(options_.overrides));
  CUBIST_ASSIGN_OR_RETURN(overrides_, overrides::Overrides::bind(std::move(rules), views, barred));
  return {};
}

Result<Selection> Runtime::choose(const AttentionProblem& problem,
                                  const DeviceProfile& device) const {
  if (overrides_) return overrides_->select(problem, device, select_options());
  return selector::select(kernels_, problem, device, select_options());
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
  return select_as(shared_from_this(), problem, device);
}

Result<std::unique_ptr<Selected>> Runtime::select_for_owner(const AttentionProblem& problem,
                                                            const DeviceProfile& device) {
  return select_as(std::shared_ptr<Runtime>(std::shared_ptr<Runtime>(), this), problem, device);
}

Result<std::unique_ptr<Selected>> Runtime::select_as(std::shared_ptr<Runtime> owner,
                                                     const AttentionProblem& problem,
                                                     const DeviceProfile& device) {
  CUBIST_ASSIGN_OR_RETURN(const Selection selection, choose(problem, device));
  selections_.fetch_add(1, std::memory_order_relaxed);
  if (selection.best().fallback != FallbackReason::kNone) {
    fallbacks_.fetch_add(1, std::memory_order_relaxed);
  }
  return std::make_unique<Selected>(std::move(owner), problem, device, selection);
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

Runtime::Place Runtime::place_of(const KernelRecord& record) const {
  for (const std::vector<Manifest>* manifests : {&manifests_, &aux_manifests_}) {
    for (const Manifest& manifest : *manifests) {
      if (const Pack* pack = pack_of(manifest, record)) return {&manifest, pack};
    }
  }
  return {};
}

Result<VerifiedCubin> Runtime::cubin(const KernelRecord& record) const {
  // Whatever runs comes through here, however it was chosen.
  CUBIST_RETURN_IF_ERROR(revoked_.check(record.sha256, record.name));
  const Place place = place_of(record);
  if (place.pack == nullptr) {
    return fail(StatusCode::kInternal, "kernel '{}' is of another runtime", record.name);
  }
  return cubins_.get(*place.manifest, *place.pack, record);
}

Result<VerifiedCubin> Runtime::launchable_cubin(const KernelRecord& record) const {
  CUBIST_ASSIGN_OR_RETURN(VerifiedCubin cubin, this->cubin(record));
  CUBIST_RETURN_IF_ERROR(check_param_bytes(cubin, record, place_of(record).pack->param_layout));
  return cubin;
}

std::int32_t Runtime::min_driver_of(const KernelRecord& record) const {
  const Place place = place_of(record);
  return place.pack == nullptr ? 0 : place.pack->min_driver;
}

Status Runtime::fetch(std::span<const KernelRecord* const> records) const {
  std::vector<const KernelRecord*> wanted(records.begin(), records.end());
  for (const KernelRecord* record : wanted) {
    CUBIST_RETURN_IF_ERROR(revoked_.check(record->sha256, record->name));
  }
  if (wanted.empty()) {
    std::size_t barred = 0;
    for_each_kernel(manifests_, [&](const KernelRecord& record) {
      if (revoked_.contains(record.sha256)) {
        ++barred;
      } else {
        wanted.push_back(&record);
      }
    });
    warn_of_revoked(barred, "fetched");
  }
  // Relative sources start at their manifest, so each manifest is a run of its own.
  std::vector<std::pair<const Manifest*, std::vector<FetchItem>>> runs;
  FetchProgress before;
  for (const KernelRecord* record : wanted) {
    const Place place = place_of(*record);
    if (place.pack == nullptr) {
      return fail(StatusCode::kInternal, "kernel '{}' is of another runtime", record->name);
    }
    auto run = std::find_if(runs.begin(), runs.end(),
                            [&](const auto& other) { return other.first == place.manifest; });
    if (run == runs.end()) run = runs.insert(run, {place.manifest, {}});
    run->second.push_back({place.pack, record});
    before.bytes_total += record->size_bytes;
  }
  before.files_total = wanted.size();
  for (const auto& [manifest, items] : runs) {
    CUBIST_RETURN_IF_ERROR(cubins_.fetch(*manifest, items, before));
    before.files_done += items.size();
    for (const FetchItem& item : items) before.bytes_done += item.record->size_bytes;
  }
  return {};
}

Result<launcher::PrepareReport> Runtime::prepare(std::span<const KernelRecord* const> records,
                                                 unsigned num_threads) {
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, this->launcher());
  std::vector<const KernelRecord*> all;
  if (records.empty()) {
    CUBIST_ASSIGN_OR_RETURN(const launcher::ContextInfo* context, launcher->current_context());
    std::size_t barred = 0;
    Status reason;  // why the first that does not fit does not
    for_each_kernel(manifests_, [&](const KernelRecord& record) {
      if (revoked_.contains(record.sha256)) {
        ++barred;
        return;
      }
      Status fits = launcher::check_kernel_fits(record, min_driver_of(record), *context);
      if (fits) all.push_back(&record);
      if (!fits && reason) reason = std::move(fits);
    });
    if (all.empty() && !reason) {
      return forward_error(reason, "no kernel of the manifests can be loaded here");
    }
    warn_of_revoked(barred, "prepared");
    records = all;
  }
  return launcher->prepare(records, num_threads,
                           [this](std::span<const KernelRecord* const> wanted) -> Status {
                             std::vector<const KernelRecord*> missing;
                             for (const KernelRecord* record : wanted) {
                               const auto entry = store().find(*record);
                               if (!entry || !*entry) missing.push_back(record);
                             }
                             return missing.empty() ? Status{} : fetch(missing);
                           });
}

Status Runtime::fuse_scales(const AttentionProblem& problem, const launcher::DeviceScales& scales,
                            const launcher::HostScales& host, std::uint64_t bmm1_scale_log2,
                            std::uint64_t bmm2_scale, cuda::CUstream stream) {
  CUBIST_ASSIGN_OR_RETURN(const CubistFuseScalesParams params,
                          launcher::fill_fuse_scales_params(with_derived_fields(problem), scales,
                                                            host, bmm1_scale_log2, bmm2_scale));
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, this->launcher());
  constexpr launcher::AuxKernel kKernel = {launcher::AuxKernel::Kind::kFuseScales, Dtype::kUnknown};
  CUBIST_ASSIGN_OR_RETURN(const launcher::ContextInfo* context, launcher->current_context());
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          aux_->prepare(*launcher, kKernel, *context, &stream));
  return AuxLauncher::launch(launcher->driver(), ready, {{1, 1, 1}, 32, problem.enable_pdl},
                             &params, stream);
}

Result<launcher::Launcher*> Runtime::launcher() {
  if (launcher::Launcher* made = launcher_.load(std::memory_order_acquire)) return made;
  const std::lock_guard lock(launcher_mutex_);
  if (owned_launcher_ != nullptr) return owned_launcher_.get();
  CUBIST_ASSIGN_OR_RETURN(std::shared_ptr<driver::Driver> driver, driver::Driver::open());
  owned_launcher_ = std::make_unique<launcher::Launcher>(
      std::move(driver), [this](const KernelRecord& record) { return launchable_cubin(record); },
      [this](const KernelRecord& record) { return min_driver_of(record); });
  launcher_.store(owned_launcher_.get(), std::memory_order_release);
  return owned_launcher_.get();
}

launcher::LoadCounters Runtime::load_counters() const {
  const launcher::Launcher* made = launcher_.load(std::memory_order_acquire);
  return made == nullptr ? launcher::LoadCounters{} : made->counters();
}

}  // namespace cubist::runtime
