#include "registry/install_queue.h"

#include <exception>
#include <utility>

#include "base/threads.h"

namespace cubist {
namespace {

// A group this large is published though more is coming: bounds what a crash can lose and how many
// files are open.
constexpr std::size_t kMaxGroup = 128;

Result<VerifiedCubin> verify_task(InstallQueue::Task& task) {
  CUBIST_ASSIGN_OR_RETURN(Bytes bytes, task.take(std::move(task.response)));
  return VerifiedCubin::verify(std::move(bytes), task.record->sha256, task.record->size_bytes,
                               task.origin);
}

}  // namespace

InstallQueue::InstallQueue(const Store& store, unsigned threads, std::function<void()> wake)
    : store_(store), wake_(std::move(wake)) {
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work_until_stopped(); });
  } catch (const std::exception&) {
    // No more to be had: those there are do it all; where there is none, submit() does.
  }
}

InstallQueue::~InstallQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) join(thread);
}

void InstallQueue::submit(Task task) {
  ++pending_;
  if (threads_.empty()) return do_now(std::move(task));
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

std::vector<InstallQueue::Done> InstallQueue::drain() {
  const std::lock_guard lock(mutex_);
  if (thrown_) std::rethrow_exception(thrown_);
  pending_ -= done_.size();
  return std::exchange(done_, {});
}

void InstallQueue::finish(Done done) {
  {
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }
  wake_();
}

void InstallQueue::process(Task task) {
  auto cubin = verify_task(task);
  if (!cubin) return finish({task.id, Stage::kSource, std::move(cubin.error()), std::nullopt});
  auto staged = store_.stage(*cubin);
  if (!staged)
    return finish({task.id, Stage::kStore, std::move(staged.error()), std::move(*cubin)});
  const std::lock_guard lock(mutex_);
  written_.push_back({task.id, std::move(*cubin), std::move(*staged)});
}

void InstallQueue::publish(std::vector<Written> group) {
  std::vector<Store::Staged> staged;
  staged.reserve(group.size());
  for (Written& one : group) staged.push_back(std::move(one.staged));
  const Status published = store_.publish(staged);
  for (Written& one : group) {
    if (published) {
      finish({one.id, Stage::kDone, std::nullopt, std::move(one.cubin)});
    } else {
      finish({one.id, Stage::kStore, published.error(), std::move(one.cubin)});
    }
  }
}

void InstallQueue::do_now(Task task) {
  process(std::move(task));
  publish(std::exchange(written_, {}));
}

void InstallQueue::work_until_stopped() {
  make_room_to_throw();
  try {
    work();
    return;
  } catch (...) {  // would end the process
    const std::lock_guard lock(mutex_);
    thrown_ = std::current_exception();
    stop_ = true;
  }
  changed_.notify_all();
  wake_();
}

void InstallQueue::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool group_ready =
        !publishing_ && !written_.empty() && (tasks_.empty() || written_.size() >= kMaxGroup);
    if (group_ready) {
      publishing_ = true;
      std::vector<Written> group = std::exchange(written_, {});
      lock.unlock();
      publish(std::move(group));
      lock.lock();
      publishing_ = false;
      changed_.notify_all();
    } else if (!tasks_.empty() && written_.size() < 2 * kMaxGroup) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      process(std::move(task));
      lock.lock();
      changed_.notify_all();
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace cubist
