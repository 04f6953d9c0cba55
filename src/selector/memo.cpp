#include "selector/memo.h"

#include <algorithm>
#include <bit>

#include "selector/kernel_key.h"

namespace cubist::selector {
namespace {

/// Over the fields that differ from call to call; the rest is compared, not hashed.
std::uint64_t hash_of(const AttentionProblem& p, const DeviceProfile& device) {
  const auto pair = [](std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
  };
  const std::uint64_t lengths = mix(pair(p.batch, p.max_q_len), pair(p.max_kv_len, p.window_left));
  const std::uint64_t shape =
      mix(pair(p.num_q_heads, p.num_kv_heads), pair(p.head_dim_qk, p.page_size)) +
      static_cast<std::uint64_t>(p.num_pages + p.sum_seq_q);
  const auto kinds = static_cast<std::uint64_t>(p.phase) |
                     static_cast<std::uint64_t>(p.dtype_q) << 8 |
                     static_cast<std::uint64_t>(p.dtype_k) << 16 |
                     static_cast<std::uint64_t>(p.dtype_o) << 24 | std::uint64_t{device.sm} << 32;
  return mix(lengths ^ kinds, shape);
}

}  // namespace

SelectionMemo::SelectionMemo(const KernelTable& table, std::size_t slots)
    : table_(&table), entries_(std::bit_ceil(std::clamp<std::size_t>(slots, 1, 1U << 20))) {}

bool SelectionMemo::matches(const Entry& entry, const AttentionProblem& problem,
                            const DeviceProfile& device, const SelectOptions& options) const {
  return entry.used && entry.problem == problem && entry.sm == device.sm &&
         entry.num_sms == device.num_sms && entry.max_smem_optin == device.max_smem_optin &&
         entry.max_active_clusters == device.max_active_clusters &&
         entry.strict == options.strict &&
         entry.rules.cost_model_always == options.rules.cost_model_always &&
         entry.rules.enable_tile_kv64 == options.rules.enable_tile_kv64;
}

const Selection* SelectionMemo::find(const AttentionProblem& problem, const DeviceProfile& device,
                                     const SelectOptions& options, Status& status) {
  Entry& entry = entries_[hash_of(problem, device) & (entries_.size() - 1)];
  if (matches(entry, problem, device, options)) {
    ++hits_;
    return &entry.selection;
  }
  ++misses_;
  entry.used = false;
  status = select_into(*table_, problem, device, options, entry.selection);
  if (!status) return nullptr;
  entry.problem = problem;
  entry.sm = device.sm;
  entry.num_sms = device.num_sms;
  entry.max_smem_optin = device.max_smem_optin;
  entry.max_active_clusters = device.max_active_clusters;
  entry.strict = options.strict;
  entry.rules = options.rules;
  entry.used = true;
  return &entry.selection;
}

void SelectionMemo::clear() {
  for (Entry& entry : entries_) entry.used = false;
}

}  // namespace cubist::selector
