#include "selector/kernel_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "selector/kernel_key.h"

namespace cubist::selector {
namespace {

// The loads below keep probe sequences at one or two steps and 140,000 kernels within 4 MB.
std::size_t slot_count_for(std::size_t kernels) {
  return std::bit_ceil(std::max<std::size_t>(16, kernels + kernels / 2));
}

int arch_rank(SmArch arch) {
  switch (arch.kind) {
    case SmArch::Kind::kSpecific:
      return 2;
    case SmArch::Kind::kFamily:
      return 1;
    case SmArch::Kind::kPortable:
      return 0;
  }
  return 0;
}

/// Sizes that geometry divides by. A parsed manifest has passed this already; tables made otherwise
/// too.
bool has_usable_sizes(const KernelTraits& t, KernelFamily family) {
  if (t.tile_q == 0 || t.tile_kv == 0 || t.threads == 0 || t.threads > 1024) return false;
  if (family == KernelFamily::kCubistDecode) return true;
  return t.step_q != 0 && t.step_kv != 0 && t.head_dim_per_cta_v != 0;
}

/// Ways of computing that no known revision's rules ask for.
bool computes_in_unknown_ways(const KernelTraits& t) {
  return t.fp16_softmax || t.spcompress || t.k_only_transform || t.separate_transformed_kv ||
         t.fuses_inv_rope_fp8_quant || t.ue8m0_scale_o;
}

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

bool is_preferred(const KernelRecord& a, const KernelRecord& b) {
  const int rank_a = arch_rank(a.traits.arch);
  const int rank_b = arch_rank(b.traits.arch);
  if (rank_a != rank_b) return rank_a > rank_b;
  if (a.traits.arch.sm != b.traits.arch.sm) return a.traits.arch.sm > b.traits.arch.sm;
  if (a.name != b.name) return a.name < b.name;
  return a.sha256 < b.sha256;
}

bool PackTable::has_kernels_for(std::uint32_t sm) const {
  return std::any_of(archs_.begin(), archs_.end(), [sm](SmArch arch) { return runs_on(arch, sm); });
}

PackTable::GroupId PackTable::find_group(const KernelTraits& wanted) const {
  if (groups_.empty()) return kNoGroup;
  const std::uint64_t types = type_word(wanted);
  const std::uint64_t shape = shape_word(wanted);
  const std::size_t mask = group_slots_.size() - 1;
  for (std::size_t i = mix(types, shape) & mask; group_slots_[i] != 0; i = (i + 1) & mask) {
    const GroupId id = group_slots_[i] - 1;
    if (groups_[id].types == types && groups_[id].shape == shape) return id;
  }
  return kNoGroup;
}

std::span<const std::uint32_t> PackTable::group_members(GroupId group) const {
  if (group >= groups_.size()) return {};
  return std::span<const std::uint32_t>(members_).subspan(groups_[group].first,
                                                          groups_[group].count);
}

const KernelRecord* PackTable::find(GroupId group, const KernelTraits& wanted,
                                    std::uint32_t sm) const {
  if (group == kNoGroup) return nullptr;
  const std::uint64_t tile = tile_word(wanted);
  const std::uint32_t kind = kind_word(wanted);
  const std::uint64_t hash = hash_words(group, tile, kind);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const std::size_t mask = slots_.size() - 1;
  const KernelRecord* best = nullptr;
  for (std::size_t i = hash & mask; slots_[i].record_plus_one != 0; i = (i + 1) & mask) {
    if (slots_[i].tag != tag) continue;
    const std::uint32_t index = slots_[i].record_plus_one - 1;
    const KernelRecord& record = pack_.kernels[index];
    const KernelTraits& traits = record.traits;
    if (group_of_[index] != group || tile_word(traits) != tile || kind_word(traits) != kind)
      continue;
    if (!runs_on(traits.arch, sm)) continue;
    if (best == nullptr || is_preferred(record, *best)) best = &record;
  }
  return best;
}

bool PackTable::is_left_out(const KernelRecord& record) const {
  const auto index = static_cast<std::size_t>(&record - pack_.kernels.data());
  return index < group_of_.size() && group_of_[index] == kNoGroup;
}

std::size_t PackTable::index_bytes() const {
  return bytes_of(group_of_) + bytes_of(groups_) + bytes_of(group_slots_) + bytes_of(members_) +
         bytes_of(slots_) + bytes_of(archs_) + sizeof(*this);
}

Status PackTable::build(const PackView& pack, std::span<const Sha256Digest> sorted_barred) {
  pack_ = pack;
  std::vector<std::uint64_t> hashes(pack.kernels.size());
  CUBIST_RETURN_IF_ERROR(read_records(sorted_barred, hashes));
  collect_members();
  slots_.assign(slot_count_for(members_.size()), Slot{});
  for (std::uint32_t index = 0; index < group_of_.size(); ++index) {
    if (group_of_[index] != kNoGroup) insert_record(index, hashes[index]);
  }
  return {};
}

/// The one walk over all records: they are the large part, and the rest works on what is kept here.
Status PackTable::read_records(std::span<const Sha256Digest> sorted_barred,
                               std::span<std::uint64_t> hashes) {
  group_of_.assign(pack_.kernels.size(), kNoGroup);
  group_slots_.assign(256, 0);
  GroupId last = kNoGroup;  // neighbours in a manifest mostly share their group
  for (std::size_t i = 0; i < pack_.kernels.size(); ++i) {
    const KernelRecord& record = pack_.kernels[i];
    const KernelTraits& traits = record.traits;
    if (archs_.empty() || std::find(archs_.begin(), archs_.end(), traits.arch) == archs_.end()) {
      archs_.push_back(traits.arch);
    }
    if (pack_.revision == HeuristicRevision::kNone || computes_in_unknown_ways(traits) ||
        std::binary_search(sorted_barred.begin(), sorted_barred.end(), record.sha256)) {
      continue;
    }
    if (!has_usable_sizes(traits, pack_.family)) {
      return fail(StatusCode::kManifestInvalid,
                  "kernel '{}' of pack '{}' has a tile, step or column count of 0, or threads "
                  "outside 1..1024: it cannot be launched; correct or remove the entry",
                  record.name, pack_.name);
    }
    const std::uint64_t types = type_word(traits);
    const std::uint64_t shape = shape_word(traits);
    if (last == kNoGroup || groups_[last].types != types || groups_[last].shape != shape) {
      last = find_group(traits);
    }
    if (last == kNoGroup) last = add_group(types, shape);
    group_of_[i] = last;
    ++groups_[last].count;
    hashes[i] = hash_words(last, tile_word(traits), kind_word(traits));
  }
  return {};
}

PackTable::GroupId PackTable::add_group(std::uint64_t types, std::uint64_t shape) {
  const auto id = static_cast<GroupId>(groups_.size());
  groups_.push_back(Group{types, shape, 0, 0});
  if (groups_.size() * 2 <= group_slots_.size()) {
    insert_group(id);
  } else {
    group_slots_.assign(group_slots_.size() * 4, 0);
    for (GroupId g = 0; g <= id; ++g) insert_group(g);
  }
  return id;
}

void PackTable::insert_group(GroupId id) {
  const std::size_t mask = group_slots_.size() - 1;
  std::size_t i = mix(groups_[id].types, groups_[id].shape) & mask;
  while (group_slots_[i] != 0) i = (i + 1) & mask;
  group_slots_[i] = id + 1;
}

void PackTable::collect_members() {
  std::uint32_t first = 0;
  for (Group& group : groups_) {
    group.first = first;
    first += group.count;
    group.count = 0;
  }
  members_.resize(first);
  for (std::uint32_t i = 0; i < group_of_.size(); ++i) {
    if (group_of_[i] == kNoGroup) continue;
    Group& group = groups_[group_of_[i]];
    members_[group.first + group.count++] = i;
  }
}

void PackTable::insert_record(std::uint32_t index, std::uint64_t hash) {
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = hash & mask;
  for (; slots_[i].record_plus_one != 0; i = (i + 1) & mask) {
    if (slots_[i].tag != tag) continue;
    const std::uint32_t other_index = slots_[i].record_plus_one - 1;
    const KernelRecord& record = pack_.kernels[index];
    const KernelRecord& other = pack_.kernels[other_index];
    const bool same_key = group_of_[other_index] == group_of_[index] &&
                          tile_word(other.traits) == tile_word(record.traits) &&
                          kind_word(other.traits) == kind_word(record.traits);
    // Look-ups can reach one kernel a key and architecture: keep it alone, so that a pack of equal
    // kernels cannot make the probe sequences long.
    if (same_key && other.traits.arch == record.traits.arch) {
      if (is_preferred(record, other)) slots_[i].record_plus_one = index + 1;
      return;
    }
  }
  slots_[i] = Slot{tag, index + 1};
}

Result<KernelTable> KernelTable::build(std::span<const PackView> packs,
                                       std::span<const BarredKernel> barred) {
  KernelTable table;
  table.barred_.assign(barred.begin(), barred.end());
  std::vector<Sha256Digest> sorted_barred;
  for (const BarredKernel& bar : barred) sorted_barred.push_back(bar.sha256);
  std::sort(sorted_barred.begin(), sorted_barred.end());
  table.packs_.resize(packs.size());
  for (std::size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].kernels.size() > std::numeric_limits<std::uint32_t>::max() / 4) {
      return fail(StatusCode::kInvalidArgument,
                  "pack '{}' has {} kernels; the index numbers at most {}: split the pack",
                  packs[i].name, packs[i].kernels.size(),
                  std::numeric_limits<std::uint32_t>::max() / 4);
    }
    CUBIST_RETURN_IF_ERROR(table.packs_[i].build(packs[i], sorted_barred));
  }
  return table;
}

std::size_t KernelTable::index_bytes() const {
  std::size_t bytes = sizeof(*this);
  for (const PackTable& pack : packs_) bytes += pack.index_bytes();
  return bytes;
}

}  // namespace cubist::selector
