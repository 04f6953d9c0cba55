#include "capi/launch_memo.h"

#include <cstring>

namespace cubist::capi {
namespace {

// Compared byte for byte, so that no byte may be padding.
static_assert(offsetof(cubist_attention_problem, reserved) + sizeof(std::int32_t) ==
              sizeof(cubist_attention_problem));
static_assert(offsetof(cubist_attention_problem, kv_combined) ==
              offsetof(cubist_attention_problem, workspace_size) + sizeof(std::int64_t));
static_assert(sizeof(cubist_device) == 4 * 4 + 17 * 4 + 68);

/// Which part a thread tries first.
std::size_t part_of_thread() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

/// Over what differs from call to call; the rest is compared, not hashed.
std::size_t place_of(const LaunchQuestion& question) {
  const cubist_attention_problem& p = *question.problem;
  std::uint64_t hash = question.context_id;
  for (const std::int64_t value :
       {std::int64_t{p.batch}, std::int64_t{p.max_q_len}, std::int64_t{p.max_kv_len},
        std::int64_t{p.window_left}, std::int64_t{p.num_q_heads}, std::int64_t{p.head_dim_qk},
        p.sum_seq_q, p.num_pages, std::int64_t{p.phase}}) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

}  // namespace

LaunchMemo::~LaunchMemo() {
  for (std::atomic<Part*>& part : parts_) delete part.load();
}

bool LaunchMemo::matches(const Entry& entry, const LaunchQuestion& question) {
  if (entry.selected == nullptr || entry.context_id != question.context_id) return false;
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bytes are meant, also of floats
  if (std::memcmp(&entry.problem, question.problem, sizeof(entry.problem)) != 0) return false;
  return question.device == nullptr
             ? entry.device.struct_size == 0
             : std::memcmp(&entry.device, question.device, sizeof(entry.device)) == 0;
}

/// The thread's own part, or the next that nobody has; none if all are taken, which is no harm.
template <class Use>
void LaunchMemo::with_part(Use use) {
  const std::size_t first = part_of_thread();
  for (std::size_t i = 0; i < kParts; ++i) {
    std::atomic<Part*>& place = parts_[(first + i) % kParts];
    Part* part = place.load(std::memory_order_acquire);
    if (part == nullptr) {
      auto made = std::make_unique<Part>();
      if (place.compare_exchange_strong(part, made.get(), std::memory_order_acq_rel)) {
        part = made.release();
      }
    }
    if (part->taken.exchange(true, std::memory_order_acquire)) continue;
    use(*part);
    part->taken.store(false, std::memory_order_release);
    return;
  }
}

std::shared_ptr<runtime::Selected> LaunchMemo::find(const LaunchQuestion& question) {
  std::shared_ptr<runtime::Selected> found;
  with_part([&](Part& part) {
    const Entry& entry = part.entries[place_of(question) % kPlaces];
    if (matches(entry, question)) found = entry.selected;
  });
  return found;
}

void LaunchMemo::keep(const LaunchQuestion& question, std::shared_ptr<runtime::Selected> selected) {
  with_part([&](Part& part) {
    Entry& entry = part.entries[place_of(question) % kPlaces];
    entry.selected.swap(selected);  // the old one goes after the part is free again
    entry.context_id = question.context_id;
    entry.problem = *question.problem;
    entry.device = question.device == nullptr ? cubist_device{} : *question.device;
  });
}

}  // namespace cubist::capi
