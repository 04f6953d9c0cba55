#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "cubist/cubist.h"
#include "runtime/selected.h"

namespace cubist::capi {

/// What one cubist_runtime_launch asks selection for.
struct LaunchQuestion {
  const cubist_attention_problem* problem = nullptr;
  const cubist_device* device = nullptr;  ///< null: that of the context
  std::uint64_t context_id = 0;           ///< 0 where `device` is given
};

/// Remembers selections for cubist_runtime_launch, question by question, byte for byte. Threads
/// have parts of their own, so that none waits for another: a part that is taken is passed over. A
/// new answer pushes out an old one of the same place. Safe from any thread; a hit allocates
/// nothing.
class LaunchMemo {
 public:
  LaunchMemo() = default;
  ~LaunchMemo();
  LaunchMemo(const LaunchMemo&) = delete;
  LaunchMemo& operator=(const LaunchMemo&) = delete;

  /// Null where it was not asked before, or is forgotten.
  std::shared_ptr<runtime::Selected> find(const LaunchQuestion& question);
  void keep(const LaunchQuestion& question, std::shared_ptr<runtime::Selected> selected);

 private:
  static constexpr std::size_t kParts = 16;
  static constexpr std::size_t kPlaces = 64;  // of a part; a power of two

  struct Entry {
    std::shared_ptr<runtime::Selected> selected;
    std::uint64_t context_id = 0;
    cubist_attention_problem problem;
    cubist_device device;  ///< struct_size 0: that of the context
  };
  struct alignas(64) Part {
    std::atomic<bool> taken{false};
    std::array<Entry, kPlaces> entries;
  };

  static bool matches(const Entry& entry, const LaunchQuestion& question);
  template <class Use>
  void with_part(Use use);

  std::array<std::atomic<Part*>, kParts> parts_{};
};

}  // namespace cubist::capi
