#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace cubist::launcher {

/// Values by CUDA context id, read without a lock. Entries are only ever added and never move; ids
/// are never reused by the driver, so an entry of a destroyed context is never found again.
template <class T>
class ContextList {
 public:
  ContextList() = default;
  ContextList(const ContextList&) = delete;
  ContextList& operator=(const ContextList&) = delete;
  ~ContextList() {
    for (Node* node = head_.load(std::memory_order_relaxed); node != nullptr;) {
      Node* next = node->next;
      delete node;
      node = next;
    }
  }

  const T* find(std::uint64_t context_id) const {
    for (const Node* node = head_.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
      if (node->context_id == context_id) return &node->value;
    }
    return nullptr;
  }

  /// The caller sees to it that there is one writer at a time and no such entry yet.
  const T& add(std::uint64_t context_id, T value) {
    Node* node = new Node{context_id, std::move(value), head_.load(std::memory_order_relaxed)};
    head_.store(node, std::memory_order_release);
    return node->value;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Node* node = head_.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
      visit(node->value);
    }
  }

 private:
  struct Node {
    std::uint64_t context_id;
    T value;
    Node* next;
  };
  std::atomic<Node*> head_{nullptr};
};

}  // namespace cubist::launcher
