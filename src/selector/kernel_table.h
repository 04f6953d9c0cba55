#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/kernel_record.h"
#include "selector/decode_model.h"

namespace cubist::selector {

/// One pack of a manifest as selection sees it. Borrowed: records must outlive every table and plan
/// made from them, and must not move.
struct PackView {
  std::string_view name;
  KernelFamily family = KernelFamily::kTrtllmGenFmha;
  HeuristicRevision revision = HeuristicRevision::kTrtllmGenFmha_0_6_13;
  ParamLayout param_layout = ParamLayout::kTrtllmGenFmha1280;
  std::span<const KernelRecord> kernels;
  /// Of the rules cubist-decode-1; null: the shipped one.
  const DecodeModel* decode_model = nullptr;
};

/// A kernel that must not be chosen, whatever the rules say, and why (a revocation or a user's
/// rule).
struct BarredKernel {
  Sha256Digest sha256;
  std::string reason;
};

/// The index over one pack. Two kernels that differ only in architecture share a key; `find`
/// prefers the one made for exactly this device. Immutable; any number of threads may read it.
class PackTable {
 public:
  using GroupId = std::uint32_t;
  static constexpr GroupId kNoGroup = 0xffffffffU;

  const PackView& pack() const { return pack_; }
  /// Whether any kernel of the pack runs on a device of this compute capability.
  bool has_kernels_for(std::uint32_t sm) const;

  /// Kernels that agree with `wanted` in what no rule ever changes during one selection: the four
  /// types, SageAttention blocks, both head sizes, layout and sparse type. kNoGroup: there are
  /// none.
  GroupId find_group(const KernelTraits& wanted) const;
  /// Positions in pack().kernels, ascending.
  std::span<const std::uint32_t> group_members(GroupId group) const;

  /// The kernel of `group` equal to `wanted` in mask, kernel type, scheduler, multi_ctas_kv_mode,
  /// head_dim_per_cta_v, tile_q, tile_kv, page size, dynamic page, 2-CTA MMA, smem reuse and skip
  /// softmax, that runs on `sm`; null if there is none. Steps, threads, smem and names do not take
  /// part.
  const KernelRecord* find(GroupId group, const KernelTraits& wanted, std::uint32_t sm) const;

  /// Whether a kernel of the pack can never be chosen: barred, or of a kind that no rules know.
  bool is_left_out(const KernelRecord& record) const;
  std::size_t index_bytes() const;

 private:
  friend class KernelTable;
  Status build(const PackView& pack, std::span<const Sha256Digest> sorted_barred);
  Status read_records(std::span<const Sha256Digest> sorted_barred, std::span<std::uint64_t> hashes);
  GroupId add_group(std::uint64_t types, std::uint64_t shape);
  void insert_group(GroupId id);
  void collect_members();
  void insert_record(std::uint32_t index, std::uint64_t hash);

  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t record_plus_one = 0;  // 0: empty
  };
  struct Group {
    std::uint64_t types = 0;
    std::uint64_t shape = 0;
    std::uint32_t first = 0;  // into members_
    std::uint32_t count = 0;
  };

  PackView pack_;
  std::vector<std::uint32_t> group_of_;  // by record; kNoGroup: left out
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_slots_;  // open addressing, group + 1
  std::vector<std::uint32_t> members_;
  std::vector<Slot> slots_;  // open addressing, linear probing, a power of two
  std::vector<SmArch> archs_;
};

/// Everything selection looks kernels up in: the packs of a manifest in its order. Built once,
/// about 60 ns a kernel; immutable, so any number of threads may use one table.
class KernelTable {
 public:
  /// errors  kInvalidArgument: more kernels in a pack than the index can number;
  ///         kManifestInvalid: a kernel with sizes that no launch can have
  static Result<KernelTable> build(std::span<const PackView> packs,
                                   std::span<const BarredKernel> barred = {});

  std::span<const PackTable> packs() const { return packs_; }
  std::span<const BarredKernel> barred() const { return barred_; }
  /// Bytes of the index, the kernels' own records not counted.
  std::size_t index_bytes() const;

 private:
  std::vector<PackTable> packs_;
  std::vector<BarredKernel> barred_;
};

/// Whether `a` is to be taken rather than `b` where both fit a request: made for one device before
/// family before portable, then the newer architecture, then name and hash, so that the order of
/// records never matters.
bool is_preferred(const KernelRecord& a, const KernelRecord& b);

}  // namespace cubist::selector
