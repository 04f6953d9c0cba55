#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "registry/digest_lock.h"
#include "registry/fetch.h"
#include "registry/install_queue.h"
#include "registry/source_set.h"

namespace cubist {

/// One call of fetch(): everything that changes while it runs. A job is one digest; it goes
///
///   new -> present
///       -> (somebody else fetches it: waits) -> new
///       -> source by source: request -> install -> fetched, or failed when no source is left
class FetchRun {
 public:
  FetchRun(const Store& store, std::span<const FetchItem> items, const FetchOptions& options);
  Result<FetchReport> run();

 private:
  using Clock = std::chrono::steady_clock;

  struct Job {
    FetchItem item;
    FetchedFile file;
    std::size_t source = 0;
    std::size_t attempt = 0;       ///< way of that source
    bool tried_again = false;      ///< once more at the same source after bytes that were wrong
    std::uint64_t generation = 0;  ///< of the source when it made the offer
    bool locked = false;
    bool broken_reported = false;
    bool resumed = false;  ///< the bytes at the install queue came in pieces
    std::string origin;
    std::vector<Error> causes;                   ///< one per source
    std::string partial_key;                     ///< of the present request
    std::shared_ptr<const PartialBody> partial;  ///< what a request that failed had
    bool waits = false;                          ///< for another process
    Clock::time_point waits_since;
  };
  struct Response {
    Job* job = nullptr;
    std::function<Result<Bytes>(HttpResponse)> take;
    HttpResult result;
  };

  void add_jobs(std::span<const FetchItem> items);
  /// True if the job has gone on or is done; false if somebody else is fetching it.
  bool begin(Job& job);
  bool take_if_present(Job& job);
  void report_broken(Job& job, const Error* error);
  bool take_lock(Job& job);
  void next_offer(Job& job);
  void start(Job& job, Offer offer);
  void handle_responses();
  void on_response(Job& job, std::function<Result<Bytes>(HttpResponse)> take, HttpResult result);
  void on_http_error(Job& job, HttpError failure);
  void on_installed(InstallQueue::Done done);
  void on_wrong_bytes(Job& job, Error error);
  void on_store_failure(Job& job, Error error, std::optional<VerifiedCubin> cubin);
  void leave_source(Job& job, Error cause);
  void report_stale(const Job& job);
  void fail_job(Job& job);
  void end_job(Job& job, FetchedFile::State state);
  Error combined_error(const Job& job) const;
  void submit(Job& job, std::function<Result<Bytes>(HttpResponse)> take, HttpResponse response);

  void start_new_jobs();
  void look_at_waiting();
  bool busy() const;
  bool interrupted() const { return options_.cancel != nullptr && options_.cancel->load(); }
  void wind_down();
  void keep_partial(const Job& job);
  void report_progress(bool at_the_end);
  void count_run() const;
  FetchReport make_report();

  const Store& store_;
  const FetchOptions& options_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point last_progress_;
  Clock::time_point last_look_;
  HttpClient http_;
  SourceSet sources_;
  DigestLocks locks_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> job_of_item_;
  std::size_t next_job_ = 0;
  std::list<std::size_t> waiting_;
  std::deque<Response> responses_;  ///< not looked at yet; callbacks only put them here
  std::size_t active_ = 0;          ///< begun, neither waiting nor done
  FetchProgress progress_;
  std::uint64_t fetched_bytes_ = 0;
  std::uint64_t installing_bytes_ = 0;
  bool swept_ = false;
  std::optional<Error> fatal_;
  bool warned_unwritable_ = false;
  std::set<std::pair<const Pack*, std::size_t>> stale_sources_;  ///< reported already
  InstallQueue install_;                                         ///< last: its threads end first
};

}  // namespace cubist
