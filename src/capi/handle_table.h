#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cubist::capi {

/// Objects behind handles that are numbers in the shape of pointers:
///
///   bits 63..32  generation, counted up whenever a slot is freed; never 0
///   bits 31..4   slot + 1
///   bits  3..0   tag, one a kind of handle
///
/// so that a stale, foreign or made-up handle is recognised without looking behind it. Finding
/// takes no lock. Slots are never given back to the system, and one whose generations are used up
/// is never used again.
template <class Object, class Handle, std::uint64_t kTag>
class HandleTable {
 public:
  explicit constexpr HandleTable(std::string_view kind) : kind_(kind) {}

  Result<Handle*> add(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    CUBIST_ASSIGN_OR_RETURN(const std::uint32_t index, free_index());
    Slot& slot = *find_slot(index);
    const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed);
    slot.object.store(object.release(), std::memory_order_release);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in a pointer's clothes, never followed
    return reinterpret_cast<Handle*>(std::uint64_t{generation} << 32 |
                                     (std::uint64_t{index} + 1) << 4 | kTag);
  }

  /// errors  kInvalidArgument: NULL, destroyed, or no handle of this kind
  Result<Object*> find(const Handle* handle) const {
    Slot* slot = slot_of(handle);
    Object* object = slot == nullptr ? nullptr : slot->object.load(std::memory_order_acquire);
    // The generation again, after the object: a slot freed and filled meanwhile has another.
    if (object == nullptr || slot_of(handle) == nullptr) return bad_handle(handle);
    return object;
  }

  /// The object, which no handle leads to any more.
  Result<std::unique_ptr<Object>> remove(const Handle* handle) {
    const std::lock_guard lock(mutex_);
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->object.load() == nullptr) return bad_handle(handle);
    std::unique_ptr<Object> object(slot->object.exchange(nullptr));
    if (slot->generation.fetch_add(1) + 1 != 0) free_.push_back(index_of(handle));
    return object;
  }

 private:
  static constexpr std::uint32_t kChunkSlots = 256;
  static constexpr std::uint32_t kMaxChunks = 4096;

  struct Slot {
    std::atomic<std::uint32_t> generation{1};
    std::atomic<Object*> object{nullptr};
  };
  using Chunk = std::array<Slot, kChunkSlots>;

  static std::uint64_t number_of(const Handle* handle) {
    return reinterpret_cast<std::uint64_t>(handle);
  }
  static std::uint32_t index_of(const Handle* handle) {
    return static_cast<std::uint32_t>(number_of(handle) >> 4 & 0xfffffff) - 1;
  }

  Slot* find_slot(std::uint32_t index) const {
    if (index / kChunkSlots >= kMaxChunks) return nullptr;
    Chunk* chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[index % kChunkSlots];
  }

  /// Null unless tag, slot and generation are right.
  Slot* slot_of(const Handle* handle) const {
    const std::uint64_t number = number_of(handle);
    if ((number & 0xf) != kTag) return nullptr;
    Slot* slot = find_slot(index_of(handle));
    if (slot == nullptr || slot->generation.load(std::memory_order_acquire) != number >> 32) {
      return nullptr;
    }
    return slot;
  }

  Result<std::uint32_t> free_index() {
    if (free_.empty()) {
      if (num_chunks_ == kMaxChunks) {
        return fail(StatusCode::kOutOfMemory, "there are {} {} handles; destroy some",
                    kMaxChunks * kChunkSlots, kind_);
      }
      free_.reserve(std::size_t{num_chunks_ + 1} *
                    kChunkSlots);  // so that remove() never allocates
      chunks_[num_chunks_].store(new Chunk, std::memory_order_release);
      for (std::uint32_t i = kChunkSlots; i-- > 0;) {
        free_.push_back(num_chunks_ * kChunkSlots + i);
      }
      ++num_chunks_;
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }

  tl::unexpected<Error> bad_handle(const Handle* handle) const {
    if (handle == nullptr) return fail(StatusCode::kInvalidArgument, "the {} is NULL", kind_);
    return fail(StatusCode::kInvalidArgument,
                "the {} handle {:#x} was destroyed already, or never was one", kind_,
                number_of(handle));
  }

  std::string_view kind_;
  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t num_chunks_ = 0;
};

}  // namespace cubist::capi
