#pragma once

#include <cstdint>
#include <vector>

#include "selector/select.h"

namespace cubist::selector {

/// Remembers selections for callers that ask the same few questions over and over (one a layer, one
/// a step). The caller owns it; one memo, one thread at a time. A hit costs a hash and a comparison
/// of every field, and allocates nothing.
///
/// Answers depend on the table, so a memo serves one table: bind it to another and it forgets.
/// Problems that fail are not remembered, nor is what an occupancy query said: give a memo only
/// options without one, or clear it when the query's answers change.
class SelectionMemo {
 public:
  /// `slots`: rounded up to a power of two; two problems that fall on one slot push each other out.
  explicit SelectionMemo(const KernelTable& table, std::size_t slots = 64);

  /// As `select`; the pointer is valid until the next call. Null: failed, and `status` says why.
  const Selection* find(const AttentionProblem& problem, const DeviceProfile& device,
                        const SelectOptions& options, Status& status);
  void clear();
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  struct Entry {
    bool used = false;
    AttentionProblem problem;
    std::uint32_t sm = 0;
    std::int32_t num_sms = 0;
    std::uint32_t max_smem_optin = 0;
    std::array<std::int32_t, 17> max_active_clusters{};
    bool strict = false;
    RuleOptions rules;
    Selection selection;
  };

  bool matches(const Entry& entry, const AttentionProblem& problem, const DeviceProfile& device,
               const SelectOptions& options) const;

  const KernelTable* table_;
  std::vector<Entry> entries_;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace cubist::selector
