#include "manifest/index_rows.h"

namespace cubist {
namespace {

/// Every member of KernelTraits.
template <class Traits, class Visit>
void for_each_trait(Traits& t, Visit visit) {
  static_assert(sizeof(KernelTraits) == 56 && kNumTraitMembers == 38,
                "a member came or went: name it below, count it in kNumTraitMembers");
  visit(t.smem), visit(t.arch.sm), visit(t.arch.kind);
  visit(t.head_dim_qk), visit(t.head_dim_vo), visit(t.head_dim_per_cta_v);
  visit(t.tile_q), visit(t.tile_kv), visit(t.step_q), visit(t.step_kv);
  visit(t.threads), visit(t.page_size), visit(t.max_q_heads_per_cta);
  visit(t.dtype_q), visit(t.dtype_k), visit(t.dtype_v), visit(t.dtype_o);
  visit(t.qkv_layout), visit(t.mask_type), visit(t.kernel_type), visit(t.scheduler);
  visit(t.multi_ctas_kv_mode), visit(t.sparse_type);
  visit(t.sage_block_q), visit(t.sage_block_k), visit(t.sage_block_p), visit(t.sage_block_v);
  visit(t.dynamic_page), visit(t.dynamic_dtype_o), visit(t.groups_heads_q),
      visit(t.groups_tokens_heads_q);
  visit(t.reuse_smem_k_for_v), visit(t.two_cta_mma), visit(t.skip_softmax);
  visit(t.fp16_softmax), visit(t.spcompress), visit(t.k_only_transform);
  visit(t.separate_transformed_kv), visit(t.fuses_inv_rope_fp8_quant), visit(t.ue8m0_scale_o);
}

constexpr SmArch::Kind last_of(SmArch::Kind) { return SmArch::Kind::kFamily; }
constexpr Dtype last_of(Dtype) { return Dtype::kUnknown; }
constexpr QkvLayout last_of(QkvLayout) { return QkvLayout::kContiguousKv; }
constexpr MaskType last_of(MaskType) { return MaskType::kCustom; }
constexpr KernelType last_of(KernelType) { return KernelType::kSpecDecoding; }
constexpr TileScheduler last_of(TileScheduler) { return TileScheduler::kPersistent; }
constexpr MultiCtasKvMode last_of(MultiCtasKvMode) { return MultiCtasKvMode::kClusterSharedMemory; }
constexpr SparseType last_of(SparseType) { return SparseType::kDynamicTokens; }

template <class Member>
std::size_t offset_in(const KernelTraits& traits, const Member& member) {
  return static_cast<std::size_t>(reinterpret_cast<const std::uint8_t*>(&member) -
                                  reinterpret_cast<const std::uint8_t*>(&traits));
}

}  // namespace

RowWriter& RowWriter::text(std::string_view text) {
  // What does not fit 32 bits makes the whole too large, which the caller looks at.
  number(static_cast<std::uint32_t>(row_bytes_ + texts_.size()));
  number(static_cast<std::uint32_t>(text.size()));
  texts_.append(text).push_back('\0');
  return *this;
}

std::vector<std::uint8_t> RowWriter::take() {
  rows_.insert(rows_.end(), texts_.begin(), texts_.end());
  return std::move(rows_);
}

void write_pack_row(RowWriter& out, const Pack& pack) {
  out.text(pack.name).text(pack.version).text(pack.license);
  out.number(pack.family).number(pack.revision).number(pack.param_layout).zeros(1);
  out.number(static_cast<std::uint32_t>(pack.sources.size()));
  out.number(static_cast<std::uint32_t>(pack.kernels.size()));
  out.number(pack.min_driver).zeros(8);
}

void read_pack_row(RowReader& row, Pack& pack, std::uint32_t& sources, std::uint32_t& kernels) {
  row.text(pack.name).text(pack.version).text(pack.license);
  row.word(pack.family, KernelFamily::kCubistAux).word(pack.revision, HeuristicRevision::kNone);
  row.word(pack.param_layout, ParamLayout::kCubistFuseScales1).skip(1);
  row.number(sources).number(kernels).number(pack.min_driver);
}

void write_source_row(RowWriter& out, const Source& source) {
  out.text(source.location).text(source.prefix).number(source.kind).zeros(7);
}

void read_source_row(RowReader& row, Source& source) {
  row.text(source.location).text(source.prefix).word(source.kind, Source::Kind::kPip);
}

void write_kernel_row(RowWriter& out, const KernelRecord& record) {
  out.bytes(record.sha256.bytes).number(record.size_bytes).text(record.name);
  out.text(record.file() == record.name + ".cubin" ? "" : record.path.view());
  std::array<std::uint8_t, sizeof(KernelTraits)> traits{};  // whatever lies between members: 0
  for_each_trait(record.traits, [&](const auto& member) {
    std::memcpy(traits.data() + offset_in(record.traits, member), &member, sizeof(member));
  });
  out.bytes(traits);
}

TraitLimits trait_limits() {
  TraitLimits limits;
  limits.fill(0xff);
  const KernelTraits traits;
  for_each_trait(traits, [&](const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, bool>) {
      limits[offset_in(traits, member)] = 1;
    } else if constexpr (std::is_enum_v<Member>) {
      static_assert(sizeof(Member) == 1);
      limits[offset_in(traits, member)] = static_cast<std::uint8_t>(last_of(Member{}));
    }
  });
  return limits;
}

bool read_kernel_row(RowReader row, KernelRecord& record, const TraitLimits& limits) {
  row.digest(record.sha256).number(record.size_bytes).text(record.name).text(record.path);
  row.plain(record.traits, limits);
  return row.ok();
}

}  // namespace cubist
