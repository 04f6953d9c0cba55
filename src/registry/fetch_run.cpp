#include "registry/fetch_run.h"

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "registry/counters.h"
#include "registry/partial_file.h"

namespace cubist {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStepWait{100};
constexpr milliseconds kProgressEvery{100};
constexpr milliseconds kLookEvery{50};
// A living process that holds a digest this long without coming to an end has hung: longer than all
// tries of one artifact at several sources take.
constexpr std::chrono::minutes kLongestWaitForOther{15};
// Ctrl-C is answered within this.
constexpr milliseconds kWindDown{2'000};
constexpr unsigned kMaxInstallThreads = 4;
constexpr std::size_t kMaxInstalling = 512;
constexpr std::uint64_t kMaxInstallingBytes = 256 * 1024 * 1024;

unsigned install_threads(std::size_t jobs) {
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  return std::min({kMaxInstallThreads, processors,
                   static_cast<unsigned>(std::min<std::size_t>(jobs, kMaxInstallThreads))});
}

std::shared_ptr<const HttpProfile> profile_of(const FetchOptions& options) {
  if (options.profile) return options.profile;
  return std::make_shared<const HttpProfile>(http_profile_from_environment());
}

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

FetchRun::FetchRun(const Store& store, std::span<const FetchItem> items,
                   const FetchOptions& options)
    : store_(store),
      options_(options),
      http_(std::max(1U, options.parallel), options.cancel),
      sources_({http_, store, profile_of(options), options.manifest_folder, {}, options.open_oci},
               options.sources, options.offline),
      locks_(store.root()),
      install_(store, install_threads(items.size()), [this] { http_.wake(); }) {
  add_jobs(items);
}

void FetchRun::add_jobs(std::span<const FetchItem> items) {
  std::unordered_map<Sha256Digest, std::size_t> known;
  jobs_.reserve(items.size());
  for (const FetchItem& item : items) {
    const auto [place, fresh] = known.emplace(item.record->sha256, jobs_.size());
    if (fresh) {
      jobs_.emplace_back().item = item;
      progress_.bytes_total += item.record->size_bytes;
    }
    job_of_item_.push_back(place->second);
  }
  progress_.files_total = jobs_.size();
}

bool FetchRun::take_if_present(Job& job) {
  const KernelRecord& record = *job.item.record;
  const auto found = store_.find(record);
  if (!found) {
    if (options_.memory_if_unwritable) return false;
    fatal_ = found.error();
    return true;
  }
  if (!*found) return false;
  if (options_.rehash_present) {
    auto opened = store_.open_verified(record);
    if (!opened || !*opened) {
      report_broken(job, opened ? nullptr : &opened.error());
      return false;
    }
    if (options_.keep_bytes) job.file.cubin = std::move(**opened);
  }
  job.file.path = **found;
  end_job(job, FetchedFile::State::kPresent);
  return true;
}

/// Once for each job, which looks again when it has the lock.
void FetchRun::report_broken(Job& job, const Error* error) {
  if (options_.broken_is_known || job.broken_reported) return;
  job.broken_reported = true;
  log(LogLevel::kWarning, "{}",
      error == nullptr ? "an entry vanished while it was looked at" : error->message());
}

/// False: somebody else has the digest.
bool FetchRun::take_lock(Job& job) {
  if (job.waits && Clock::now() - job.waits_since > kLongestWaitForOther) {
    log(LogLevel::kWarning,
        "'{}' is locked by another process for {} minutes; fetched without lock",
        job.item.record->name, kLongestWaitForOther.count());
    return true;
  }
  switch (locks_.try_take(job.item.record->sha256)) {
    case DigestLocks::Outcome::kTaken:
      job.locked = true;
      return true;
    case DigestLocks::Outcome::kUnavailable:
      return true;
    case DigestLocks::Outcome::kBusy:
      break;
  }
  if (!job.waits) {
    job.waits = true;
    job.waits_since = Clock::now();
  }
  return false;
}

bool FetchRun::begin(Job& job) {
  ++active_;
  if (!job.waits && take_if_present(job)) return true;
  if (!take_lock(job)) {
    --active_;
    return false;
  }
  // Whoever had the lock before may have brought it.
  if (job.waits && take_if_present(job)) return true;
  if (job.locked && !job.waits && take_if_present(job)) return true;
  next_offer(job);
  return true;
}

void FetchRun::next_offer(Job& job) {
  while (job.source < sources_.count(*job.item.pack)) {
    if (interrupted() || fatal_) return end_job(job, FetchedFile::State::kFailed);
    const auto source = sources_.open(*job.item.pack, job.source);
    if (!source) {
      leave_source(job, source.error());
      continue;
    }
    auto offer = (*source)->offer(*job.item.record, job.attempt);
    if (!offer) {
      leave_source(job, offer.error());
    } else if (!*offer) {
      leave_source(job,
                   Error(StatusCode::kNotFound,
                         fmt::format("it is not there; the last place tried was {}", job.origin)));
    } else {
      job.generation = (*source)->generation();
      return start(job, std::move(**offer));
    }
  }
  fail_job(job);
}

void FetchRun::start(Job& job, Offer offer) {
  if (!swept_) store_.sweep();
  swept_ = true;
  job.origin = std::move(offer.origin);
  if (!offer.request) return submit(job, std::move(offer.take), {});
  job.partial_key = partial_key(*offer.request);
  job.partial = take_partial(store_.root(), job.item.record->sha256, job.partial_key,
                             job.item.record->size_bytes);
  if (!job.tried_again) offer.request->partial = std::exchange(job.partial, nullptr);
  http_.start(std::move(*offer.request),
              [this, &job, take = std::move(offer.take)](HttpResult result) mutable {
                responses_.push_back({&job, std::move(take), std::move(result)});
              });
}

void FetchRun::submit(Job& job, std::function<Result<Bytes>(HttpResponse)> take,
                      HttpResponse response) {
  installing_bytes_ += job.item.record->size_bytes;
  install_.submit({static_cast<std::size_t>(&job - jobs_.data()), job.item.record, job.origin,
                   std::move(take), std::move(response)});
}

void FetchRun::handle_responses() {
  while (!responses_.empty() && !interrupted()) {
    Response response = std::move(responses_.front());
    responses_.pop_front();
    if (response.result) {
      response.job->resumed = response.result->resumed;
      submit(*response.job, std::move(response.take), std::move(*response.result));
    } else {
      on_http_error(*response.job, std::move(response.result.error()));
    }
  }
}

void FetchRun::on_http_error(Job& job, HttpError failure) {
  job.partial = std::move(failure.partial);
  const Pack& pack = *job.item.pack;
  const auto source = sources_.open(pack, job.source);
  const bool not_there = failure.status == 404 || failure.status == 410;
  if (source && not_there) {
    const auto another = (*source)->offer(*job.item.record, job.attempt + 1);
    if (another && *another) {
      ++job.attempt;
      return next_offer(job);
    }
  }
  if (source && failure.status >= 400 && !job.tried_again && (*source)->refresh(job.generation)) {
    job.tried_again = true;
    return next_offer(job);
  }
  if (!not_there) sources_.failed(pack, job.source, failure.error);
  leave_source(job, std::move(failure.error));
  next_offer(job);
}

void FetchRun::on_installed(InstallQueue::Done done) {
  Job& job = jobs_[done.id];
  installing_bytes_ -= job.item.record->size_bytes;
  const auto source = sources_.open(*job.item.pack, job.source);
  switch (done.stage) {
    case InstallQueue::Stage::kDone:
      if (source) (*source)->worked(job.attempt);
      sources_.succeeded(*job.item.pack, job.source);
      job.file.path = entry_path(store_.root(), job.item.record->sha256);
      if (options_.keep_bytes) job.file.cubin = std::move(done.cubin);
      return end_job(job, FetchedFile::State::kFetched);
    case InstallQueue::Stage::kStore:
      return on_store_failure(job, std::move(*done.error), std::move(done.cubin));
    case InstallQueue::Stage::kSource:
      return on_wrong_bytes(job, std::move(*done.error));
  }
}

void FetchRun::on_wrong_bytes(Job& job, Error error) {
  const auto source = sources_.open(*job.item.pack, job.source);
  if (source && error.code() == StatusCode::kNotFound) {
    ++job.attempt;
    return next_offer(job);
  }
  if (source && error.code() == StatusCode::kIntegrity && !job.tried_again) {
    job.tried_again = true;
    if (job.resumed || (*source)->refresh(job.generation)) return next_offer(job);
  }
  leave_source(job, std::move(error));
  report_stale(job);
  next_offer(job);
}

/// A source whose bytes are of another release than the manifest is passed over, but not silently.
void FetchRun::report_stale(const Job& job) {
  const Pack& pack = *job.item.pack;
  const std::size_t left = job.source - 1;
  if (job.source >= sources_.count(pack)) return;  // the error that follows says it
  if (!stale_sources_.emplace(&pack, left).second) return;
  log(LogLevel::kWarning,
      "source {} does not have what the manifest names, the next one is tried: {}",
      sources_.name(pack, left), job.causes.back().message());
}

void FetchRun::on_store_failure(Job& job, Error error, std::optional<VerifiedCubin> cubin) {
  if (!options_.memory_if_unwritable || !cubin) {
    if (!fatal_) fatal_ = std::move(error);
    return end_job(job, FetchedFile::State::kFailed);
  }
  if (!warned_unwritable_) {
    log(LogLevel::kWarning, "used from memory, not kept: {}", error.message());
    warned_unwritable_ = true;
  }
  job.file.cubin = std::move(cubin);
  end_job(job, FetchedFile::State::kInMemory);
}

void FetchRun::leave_source(Job& job, Error cause) {
  job.causes.push_back(std::move(cause));
  ++job.source;
  job.attempt = 0;
  job.tried_again = false;
}

void FetchRun::keep_partial(const Job& job) {
  if (job.partial) {
    save_partial(store_.root(), job.item.record->sha256, job.partial_key, *job.partial);
  }
}

void FetchRun::fail_job(Job& job) {
  keep_partial(job);
  job.file.error = combined_error(job);
  end_job(job, FetchedFile::State::kFailed);
}

void FetchRun::end_job(Job& job, FetchedFile::State state) {
  job.file.state = state;
  if (state != FetchedFile::State::kPresent && state != FetchedFile::State::kFailed) {
    job.file.origin = job.origin;
    fetched_bytes_ += job.item.record->size_bytes;
  }
  if (job.locked) locks_.release(job.item.record->sha256);
  job.locked = false;
  --active_;
  ++progress_.files_done;
  if (state == FetchedFile::State::kFailed) {
    ++progress_.files_failed;
  } else {
    progress_.bytes_done += job.item.record->size_bytes;
  }
}

Error FetchRun::combined_error(const Job& job) const {
  const KernelRecord& record = *job.item.record;
  std::string text = fmt::format("cannot fetch '{}' (sha256 {}, {} bytes) into '{}'", record.name,
                                 record.sha256.hex(), record.size_bytes, store_.root());
  if (job.causes.empty()) {
    return Error(options_.offline ? StatusCode::kOffline : StatusCode::kNotFound,
                 text +
                     ": its pack has no sources; give one with --source, or install a bundle "
                     "that holds it ('cubist bundle install', docs/bundles.md)");
  }
  std::vector<StatusCode> codes;
  for (std::size_t i = 0; i < job.causes.size(); ++i) {
    text += fmt::format("\n  {}: {}", sources_.name(*job.item.pack, i), job.causes[i].message());
    const StatusCode code = job.causes[i].code();
    const StatusCode absent =
        sources_.is_remote(*job.item.pack, i) ? StatusCode::kNetwork : StatusCode::kIo;
    codes.push_back(code == StatusCode::kNotFound ? absent : code);
  }
  // The most telling of several: wrong bytes before a source that was not asked or did not answer.
  StatusCode code = codes.front();
  for (const StatusCode first :
       {StatusCode::kNetwork, StatusCode::kOffline, StatusCode::kIntegrity}) {
    if (std::find(codes.begin(), codes.end(), first) != codes.end()) code = first;
  }
  text +=
      "\n  without a network: install a bundle that a machine with one made ('cubist bundle "
      "create' "
      "there, 'cubist bundle install' here), copy that machine's store, or give a folder, wheel "
      "or bundle with --source";
  return Error(code, std::move(text));
}

/// Enough is on the wire or on its way to the disk. Many small files may wait for the disk
/// together, so that they share its syncs, but not more than memory is meant for.
bool FetchRun::busy() const {
  return http_.pending() + responses_.size() >= std::size_t{2} * options_.parallel ||
         install_.pending() >= kMaxInstalling || installing_bytes_ >= kMaxInstallingBytes;
}

void FetchRun::start_new_jobs() {
  while (next_job_ < jobs_.size() && !busy() && !fatal_ && !interrupted()) {
    const std::size_t id = next_job_++;
    if (!begin(jobs_[id])) waiting_.push_back(id);
    if (id % 64 == 0) report_progress(false);
  }
}

void FetchRun::look_at_waiting() {
  if (waiting_.empty() || Clock::now() - last_look_ < kLookEvery) return;
  last_look_ = Clock::now();
  for (auto next = waiting_.begin(); next != waiting_.end() && !busy() && !fatal_;) {
    const auto id = next++;
    if (begin(jobs_[*id])) waiting_.erase(id);
  }
}

void FetchRun::report_progress(bool at_the_end) {
  if (!options_.progress) return;
  const auto now = Clock::now();
  if (!at_the_end && now - last_progress_ < kProgressEvery) return;
  last_progress_ = now;
  progress_.received_bytes = http_.counters().received_bytes;
  progress_.seconds = seconds_since(begun_);
  options_.progress(progress_);
}

void FetchRun::count_run() const {
  RegistryCounters counters;
  for (const Job& job : jobs_) {
    counters.files_fetched += job.file.state == FetchedFile::State::kFetched ? 1 : 0;
    counters.files_in_memory += job.file.state == FetchedFile::State::kInMemory ? 1 : 0;
  }
  counters.files_failed = progress_.files_failed;
  counters.bytes_fetched = fetched_bytes_;
  counters.fetch_microseconds = static_cast<std::uint64_t>(seconds_since(begun_) * 1e6);
  add_to_counters(counters);
}

FetchReport FetchRun::make_report() {
  FetchReport report;
  report.files.reserve(job_of_item_.size());
  for (const std::size_t id : job_of_item_) report.files.push_back(jobs_[id].file);
  report.http = http_.counters();
  report.fetched_bytes = fetched_bytes_;
  report.seconds = seconds_since(begun_);
  return report;
}

/// What has come is kept when the run is stopped: whole files are installed, of the others the next
/// run asks for the rest.
void FetchRun::wind_down() {
  http_.step(milliseconds(0));  // everything under way ends and hands out what it has
  while (!responses_.empty()) {
    Response response = std::move(responses_.front());
    responses_.pop_front();
    if (response.result) {
      submit(*response.job, std::move(response.take), std::move(*response.result));
    } else {
      response.job->partial = std::move(response.result.error().partial);
      keep_partial(*response.job);
    }
  }
  const auto deadline = Clock::now() + kWindDown;
  while (install_.pending() != 0 && Clock::now() < deadline) {
    for (InstallQueue::Done& done : install_.drain()) on_installed(std::move(done));
    std::this_thread::sleep_for(milliseconds(2));
  }
}

Result<FetchReport> FetchRun::run() {
  while (!fatal_ && !interrupted()) {
    start_new_jobs();
    look_at_waiting();
    handle_responses();
    for (InstallQueue::Done& done : install_.drain()) on_installed(std::move(done));
    report_progress(false);
    if (active_ == 0 && waiting_.empty() && next_job_ == jobs_.size()) break;
    if (responses_.empty()) http_.step(waiting_.empty() ? kStepWait : kLookEvery);
  }
  if (interrupted() && !fatal_) wind_down();
  // Where nothing was missing nothing was begun, but another run may have died in this store.
  if (!swept_ && !interrupted()) store_.sweep();
  count_run();
  if (interrupted()) {
    return fail(StatusCode::kInterrupted,
                "interrupted after {} of {} files; run the same command again to go on",
                progress_.files_done - progress_.files_failed, progress_.files_total);
  }
  if (fatal_) return tl::unexpected<Error>(std::move(*fatal_));
  report_progress(true);
  return make_report();
}

}  // namespace cubist
