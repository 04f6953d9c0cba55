#include "brute_force.h"

#include <algorithm>
#include <cstdint>

namespace cubist::test {
namespace {

using std::int64_t;

int64_t up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

bool is_generation(KernelType type) {
  return type == KernelType::kSwapsMmaAbGeneration || type == KernelType::kKeepsMmaAbGeneration;
}

}  // namespace

bool serves(const KernelTraits& row, HeuristicRevision revision, const AttentionProblem& p,
            const DeviceProfile& device, bool clusters) {
  const bool decode = p.phase == Phase::kDecode;
  const bool ragged = p.phase == Phase::kRagged;
  const bool sparse = decode && p.sparse_mla_topk > 0;
  const bool dynamic = sparse && p.sparse_dynamic;
  const int vo = p.head_dim_vo == -1 ? p.head_dim_qk : p.head_dim_vo;
  const int64_t kv_len = dynamic ? p.sparse_mla_topk : p.max_kv_len;
  const int hpk = p.num_q_heads / p.num_kv_heads;

  // 1-3: types, Sage, architecture
  if (row.dtype_q != p.dtype_q || row.dtype_k != p.dtype_k) return false;
  if (row.dtype_v != p.dtype_v || row.dtype_o != p.dtype_o) return false;
  if (row.sage_block_q != p.sage_blocks[0] || row.sage_block_k != p.sage_blocks[1]) return false;
  if (row.sage_block_p != p.sage_blocks[2] || row.sage_block_v != p.sage_blocks[3]) return false;
  const bool family = row.arch == SmArch{100, SmArch::Kind::kFamily};
  if (!family && row.arch.sm != device.sm) return false;
  // 4, 5: layout, phase
  if (row.qkv_layout != (ragged ? QkvLayout::kSeparate : QkvLayout::kPagedKv)) return false;
  if (decode ? !is_generation(row.kernel_type) : row.kernel_type != KernelType::kContext)
    return false;
  // 6, 7: head sizes, columns
  if (row.head_dim_qk != p.head_dim_qk || row.head_dim_vo != vo || row.reuse_smem_k_for_v)
    return false;
  if (vo % row.head_dim_per_cta_v != 0) return false;
  // 8-10: sparse, pages
  if (static_cast<int>(row.sparse_type) != (dynamic ? 2 : sparse ? 1 : 0)) return false;
  if (ragged && row.page_size != 0) return false;
  if (!ragged && sparse && row.page_size != 1) return false;
  if (!ragged && !sparse) {
    if (row.dynamic_page) {
      if (p.head_dim_qk != vo || p.page_size < 128) return false;
    } else if (row.page_size != p.page_size) {
      return false;
    }
  }
  // 11, 12: masks
  const bool window = (p.window_left >= 0 && kv_len > p.window_left + 1) || p.chunk_size > 0;
  const int mask = static_cast<int>(row.mask_type);
  if (decode) {
    if (sparse) {
      if (mask != (revision == HeuristicRevision::kTrtllmGenFmha_0_6_8 ? 1 : 0)) return false;
    } else if (window) {
      if (mask != 2) return false;
    } else if (mask == 0) {
      if (row.groups_tokens_heads_q && p.max_q_len > 1) return false;
    } else if (mask != 1) {
      return false;
    }
  } else if (mask != (!p.causal ? 0 : window ? 2 : 1)) {
    return false;
  }
  // 15: skip softmax
  const bool wants_skip = p.skip_softmax.value_or(0.0F) != 0.0F;
  if (row.skip_softmax && !wants_skip) return false;
  // 16: head groups
  if (decode) {
    if (!row.groups_heads_q) return false;
    if (hpk > row.step_q && (hpk % row.step_q != 0 || row.groups_tokens_heads_q)) return false;
  }
  // 19: scheduler and split
  const int mode = static_cast<int>(row.multi_ctas_kv_mode);
  if (mode != 0 && (row.scheduler != TileScheduler::kStatic || !decode)) return false;
  // 22: the separate reduction
  if (mode == 2) {
    const int columns = row.head_dim_per_cta_v * (row.two_cta_mma ? 2 : 1);
    if (row.kernel_type != KernelType::kKeepsMmaAbGeneration) return false;
    if ((row.tile_q != 64 && row.tile_q != 128) || row.tile_kv != 128) return false;
    if (columns != 64 && columns != 128 && columns != 256 && columns != 512) return false;
    if (row.dtype_o == Dtype::kE2m1) return false;
    if (row.dtype_q != Dtype::kE4m3 && row.dtype_o != row.dtype_q) return false;
  }
  // 23: pairs of CTAs
  if (row.two_cta_mma) {
    if (p.num_q_heads != 128 || hpk != 128 || row.tile_q != 64) return false;
    if (row.head_dim_per_cta_v * 2 != vo || (mode != 0 && mode != 2)) return false;
  }
  // 24, 25: FP4 output, shared memory
  if (ragged && row.dtype_o == Dtype::kE2m1) return false;
  if (row.smem + 1024 > device.max_smem_optin) return false;

  // 26: rows that a tensor map can box
  const auto boxable = [](Dtype dtype, int head_dim) {
    const int bits = static_cast<int>(dtype_bits(dtype));
    const int bytes = std::min({128 * bits / 8, 128, head_dim * bits / 8});
    return bytes % 32 == 0;
  };
  if (!boxable(row.dtype_q, p.head_dim_qk) || !boxable(row.dtype_k, p.head_dim_qk)) return false;
  if (!boxable(row.dtype_v, vo)) return false;

  // 18, 20, 21, 26: the grid
  int64_t q_ctas = up(p.max_q_len, row.step_q);
  if (decode) {
    const int64_t tokens = row.groups_tokens_heads_q ? std::max(1, row.step_q / hpk) : 1;
    q_ctas = up(p.max_q_len, tokens);
  }
  const int64_t heads = row.groups_heads_q ? std::min<int64_t>(hpk, row.step_q) : 1;
  if (p.num_q_heads % heads != 0) return false;
  int64_t x = q_ctas;
  int64_t y = p.num_q_heads / heads * (vo / row.head_dim_per_cta_v);
  if (row.two_cta_mma) {
    x *= 2;
    y /= 4;
  }
  if (y > 65535 || p.batch > 65535) return false;
  if (mode == 0) return x * y * p.batch <= 2147483647;
  int64_t reach = sparse ? std::min<int64_t>(kv_len, p.sparse_mla_topk) : kv_len;
  if (mask == 2 && p.window_left >= 0 && kv_len > p.window_left + 1) {
    reach = std::min<int64_t>(reach, p.window_left + 1 + row.step_kv - 1);
  } else if (mask == 2 && p.chunk_size > 0) {
    reach = std::min<int64_t>(reach, p.chunk_size);
  }
  const int64_t base = x * y * p.batch;
  if (base > 8192 * 256) return false;
  int64_t kv = std::min(up(reach, 2 * row.step_kv), std::max<int64_t>(1, device.num_sms / base));
  if (mode == 3) kv = std::min<int64_t>(kv, 16);
  if (kv < 2) return false;
  if (mode != 3 || !clusters) return true;
  int64_t active = p.max_active_clusters;
  if (active < 0) active = device.max_active_clusters[static_cast<std::size_t>(kv)];
  return active < 0 || active * kv >= base * kv;
}

}  // namespace cubist::test
