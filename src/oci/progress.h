#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

namespace cubist::oci {

/// Tells somebody how many bytes have moved, ten times a second at most. Safe from any thread.
class Progress {
 public:
  /// total, done; one call at a time, from any thread. May be empty.
  using Listener = std::function<void(std::uint64_t total, std::uint64_t done)>;

  explicit Progress(Listener listener) : listener_(std::move(listener)) {}

  void set_total(std::uint64_t bytes) { total_ = bytes; }
  void add(std::uint64_t bytes) {
    const std::uint64_t done = done_ += bytes;
    if (!listener_) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto now = std::chrono::steady_clock::now();
    if (!lock.owns_lock() || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    listener_(total_, done);
  }
  std::uint64_t done() const { return done_; }

 private:
  Listener listener_;
  std::atomic<std::uint64_t> total_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace cubist::oci
