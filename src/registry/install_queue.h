#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "registry/source.h"
#include "registry/store.h"

namespace cubist {

/// Turns what came from sources into store entries on threads of its own: unpack, verify, write,
/// and publish in groups, so that many small files share the cost of being made durable. Whatever
/// is waiting when a publisher is free is its next group: one file alone is published at once.
class InstallQueue {
 public:
  struct Task {
    std::size_t id = 0;  ///< of the caller
    const KernelRecord* record = nullptr;
    std::string origin;
    std::function<Result<Bytes>(HttpResponse)> take;
    HttpResponse response;
  };

  enum class Stage : std::uint8_t { kSource, kStore, kDone };
  struct Done {
    std::size_t id = 0;
    Stage stage = Stage::kDone;          ///< where it failed, or kDone
    std::optional<Error> error;          ///< set unless kDone
    std::optional<VerifiedCubin> cubin;  ///< set unless it failed at kSource
  };

  /// threads  at most; where none can be started, submit() does the work itself
  /// wake     called from a worker when something is done; must be safe there
  InstallQueue(const Store& store, unsigned threads, std::function<void()> wake);
  /// Waits for what is being written; what is only queued is dropped, what is staged vanishes.
  ~InstallQueue();
  InstallQueue(const InstallQueue&) = delete;
  InstallQueue& operator=(const InstallQueue&) = delete;

  void submit(Task task);
  /// What a worker threw comes out here: memory that ran out, after which nothing more is done.
  std::vector<Done> drain();
  /// Submitted and not drained yet.
  std::size_t pending() const { return pending_; }

 private:
  struct Written {
    std::size_t id = 0;
    VerifiedCubin cubin;
    Store::Staged staged;
  };

  void work_until_stopped();
  void work();
  void do_now(Task task);
  void process(Task task);
  void publish(std::vector<Written> group);
  void finish(Done done);

  const Store& store_;
  std::function<void()> wake_;
  std::size_t pending_ = 0;  ///< of the caller's thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<Written> written_;
  bool publishing_ = false;
  bool stop_ = false;
  std::vector<Done> done_;
  std::exception_ptr thrown_;
  std::vector<std::thread> threads_;
};

}  // namespace cubist
