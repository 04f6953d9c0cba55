#include "kernels.h"

#include <algorithm>
#include <stdexcept>

namespace cubist::test {
namespace {

class ReleaseMaker {
 public:
  explicit ReleaseMaker(HeuristicRevision revision) {
    pack_.revision = revision;
    old_ = revision == HeuristicRevision::kTrtllmGenFmha_0_6_8;
    pack_.param_layout = old_ ? ParamLayout::kTrtllmGenFmha1152 : ParamLayout::kTrtllmGenFmha1280;
  }

  TestPack make() {
    for (const Dtype kv : {Dtype::kBf16, Dtype::kE4m3}) {
      base_ = KernelTraits{};
      base_.dtype_q = Dtype::kBf16;
      base_.dtype_k = base_.dtype_v = kv;
      base_.dtype_o = Dtype::kBf16;
      gqa(64);
      gqa(128);
      gqa(512);
      mla(576, 512, SparseType::kNone);
      mla(320, 256, SparseType::kNone);
      mla(576, 512, SparseType::kStaticTokens);
      mla(512, 512, SparseType::kDynamicTokens);
      context();
    }
    return std::move(pack_);
  }

 private:
  void add(KernelTraits traits, bool both_archs) {
    KernelRecord record;
    traits.arch = {100, SmArch::Kind::kFamily};
    for (int i = 0; i < (both_archs ? 2 : 1); ++i) {
      if (i == 1) traits.arch = {103, SmArch::Kind::kSpecific};
      record.traits = traits;
      record.name = "kernel" + std::to_string(pack_.kernels.size());
      for (std::size_t b = 0; b < 8; ++b) {
        record.sha256.bytes[b] = static_cast<std::uint8_t>(pack_.kernels.size() >> (8 * b));
      }
      record.sha256.bytes[31] = 1;
      pack_.kernels.push_back(record);
    }
  }

  /// All splits of one tile: mode 0 with both schedulers, 1 to 3 static.
  void splits(KernelTraits traits, bool both_archs) {
    traits.multi_ctas_kv_mode = MultiCtasKvMode::kOff;
    for (const TileScheduler scheduler : {TileScheduler::kStatic, TileScheduler::kPersistent}) {
      traits.scheduler = scheduler;
      add(traits, both_archs);
    }
    traits.scheduler = TileScheduler::kStatic;
    for (int mode = 1; mode <= 3; ++mode) {
      traits.multi_ctas_kv_mode = static_cast<MultiCtasKvMode>(mode);
      add(traits, both_archs);
    }
  }

  static void set_tile(KernelTraits& traits, int tile_q, int tile_kv) {
    traits.tile_q = static_cast<std::uint16_t>(tile_q);
    traits.step_q = traits.tile_q;
    traits.tile_kv = static_cast<std::uint16_t>(tile_kv);
    traits.step_kv = static_cast<std::uint16_t>(tile_q >= 64 ? tile_kv : 2 * tile_kv);
    traits.threads = 512;
    traits.smem = 180000;
    traits.kernel_type =
        tile_q >= 64 ? KernelType::kKeepsMmaAbGeneration : KernelType::kSwapsMmaAbGeneration;
    traits.groups_heads_q = true;
  }

  void gqa(int head_dim) {
    for (const int page : {16, 32, 128}) {
      for (const MaskType mask : {MaskType::kCausal, MaskType::kSlidingOrChunked}) {
        for (const int tile_q : {8, 16, 32, 64, 128}) {
          KernelTraits traits = base_;
          traits.head_dim_qk = traits.head_dim_vo = static_cast<std::uint16_t>(head_dim);
          set_tile(traits, tile_q, 128);
          traits.head_dim_per_cta_v =
              static_cast<std::uint16_t>(head_dim > 256 && tile_q >= 64 ? 256 : head_dim);
          traits.page_size = static_cast<std::uint16_t>(page);
          traits.dynamic_page = page == 128;
          if (traits.dynamic_page && old_) continue;
          traits.mask_type = mask;
          traits.groups_tokens_heads_q = true;
          splits(traits, page == 32);
          traits.groups_tokens_heads_q = false;
          traits.skip_softmax = true;
          splits(traits, false);
        }
      }
    }
  }

  void mla(int qk, int vo, SparseType sparse) {
    for (const int page : sparse == SparseType::kNone ? std::vector<int>{32, 64} : std::vector{1}) {
      for (const int tile_q : {8, 16, 32, 64}) {
        for (const int columns : {128, 256, 512}) {
          if (columns > vo) continue;
          KernelTraits traits = base_;
          traits.head_dim_qk = static_cast<std::uint16_t>(qk);
          traits.head_dim_vo = static_cast<std::uint16_t>(vo);
          traits.head_dim_per_cta_v = static_cast<std::uint16_t>(columns);
          set_tile(traits, tile_q, 128);
          traits.page_size = static_cast<std::uint16_t>(page);
          traits.sparse_type = sparse;
          traits.mask_type = old_ ? MaskType::kCausal : MaskType::kDense;
          splits(traits, false);
          if (tile_q == 64 && columns * 2 == vo) {
            traits.two_cta_mma = true;
            splits(traits, false);
          }
          if (qk != 320) continue;
          traits.two_cta_mma = false;
          traits.mask_type = MaskType::kSlidingOrChunked;
          splits(traits, false);
        }
      }
    }
  }

  /// 80 elements of e4m3 are rows that no tensor map can box: those kernels serve nobody.
  void context() {
    for (const auto& [qk, vo] : {std::pair{64, 64}, {80, 80}, {128, 128}, {192, 128}}) {
      for (const int page : {0, 32, 128}) {
        for (const MaskType mask :
             {MaskType::kDense, MaskType::kCausal, MaskType::kSlidingOrChunked}) {
          KernelTraits traits = base_;
          traits.head_dim_qk = static_cast<std::uint16_t>(qk);
          traits.head_dim_vo = traits.head_dim_per_cta_v = static_cast<std::uint16_t>(vo);
          traits.tile_q = traits.tile_kv = traits.step_kv = 128;
          traits.step_q = 256;
          traits.threads = 512;
          traits.smem = 165152;
          traits.qkv_layout = page == 0 ? QkvLayout::kSeparate : QkvLayout::kPagedKv;
          traits.page_size = static_cast<std::uint16_t>(page);
          traits.dynamic_page = page == 128;
          if (traits.dynamic_page && old_) continue;
          traits.mask_type = mask;
          traits.kernel_type = KernelType::kContext;
          for (const TileScheduler scheduler :
               {TileScheduler::kStatic, TileScheduler::kPersistent}) {
            traits.scheduler = scheduler;
            add(traits, false);
          }
        }
      }
    }
  }

  TestPack pack_;
  KernelTraits base_;
  bool old_ = false;
};

std::int32_t small_or_wide(std::mt19937& random, std::int32_t small, std::int32_t wide) {
  const std::int32_t most = random() % 2 == 0 ? small : wide;
  return 1 + static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(most));
}

void make_mla(std::mt19937& random, AttentionProblem& p) {
  p.is_mla = true;
  p.num_kv_heads = pick(random, {1, 1, 1, 2});
  p.num_q_heads =
      p.num_kv_heads * pick(random, {1, 3, 8, 16, 17, 20, 32, 33, 40, 48, 64, 96, 128, 256});
  const int shape = static_cast<int>(random() % 3);
  p.head_dim_qk = shape == 0 ? 576 : shape == 1 ? 320 : 512;
  p.head_dim_vo = shape == 1 ? 256 : 512;
  if (shape == 2 || random() % 3 == 0) p.sparse_mla_topk = pick(random, {4, 64, 132, 2048});
  if (shape == 2 && random() % 4 != 0) {
    p.sparse_dynamic = true;
    p.num_kv_heads = 1;
  }
}

}  // namespace

selector::KernelTable TestPack::table() const {
  const selector::PackView pack = view();
  auto table = selector::KernelTable::build({&pack, 1});
  if (!table) throw std::runtime_error(table.error().message());
  return std::move(*table);
}

TestPack made_up_release(HeuristicRevision revision) { return ReleaseMaker(revision).make(); }

TestPack thinned(const TestPack& pack, double keep, std::mt19937& random) {
  TestPack part = pack;
  part.kernels.clear();
  std::bernoulli_distribution stays(keep);
  for (const KernelRecord& record : pack.kernels) {
    if (stays(random)) part.kernels.push_back(record);
  }
  return part;
}

AttentionProblem random_problem(std::mt19937& random) {
  AttentionProblem p;
  p.dtype_k = p.dtype_v = pick(random, {Dtype::kBf16, Dtype::kE4m3});
  p.head_dim_qk = pick(random, {64, 128, 128, 512, 192, 80});
  p.num_kv_heads = pick(random, {1, 2, 4, 8});
  p.num_q_heads = p.num_kv_heads * (random() % 4 == 0
                                        ? small_or_wide(random, 16, 300)
                                        : pick(random, {1, 2, 4, 8, 12, 16, 18, 20, 32, 64, 128}));
  p.batch = small_or_wide(random, 8, 400);
  p.max_q_len = random() % 2 == 0 ? 1 : small_or_wide(random, 16, 40);
  p.max_kv_len = small_or_wide(random, 2000, 100000);
  p.page_size = pick(random, {16, 32, 32, 64, 128, 256});
  if (random() % 4 == 0) p.window_left = pick(random, {0, 127, 1023, 100000});
  if (random() % 12 == 0) {
    p.window_left = -1;
    p.chunk_size = 1024;
  }
  if (random() % 6 == 0) p.skip_softmax = 5.0F;
  p.lse = random() % 10 == 0;
  p.phase = pick(random,
                 {Phase::kDecode, Phase::kDecode, Phase::kDecode, Phase::kContext, Phase::kRagged});
  if (p.phase == Phase::kDecode && random() % 3 == 0) {
    make_mla(random, p);
    if (p.sparse_dynamic) {
      p.lse = false;
      p.skip_softmax.reset();
    }
  }
  if (p.head_dim_qk == 192) p.head_dim_vo = 128;
  if (p.phase != Phase::kDecode) {
    p.max_q_len = small_or_wide(random, 300, 5000);
    p.causal = random() % 3 != 0;
    if (!p.causal && p.phase == Phase::kContext) p.window_left = -1;
    if (!p.causal) p.chunk_size = 0;
  }
  return p;
}

DeviceProfile random_device(std::mt19937& random) {
  DeviceProfile device = b200();
  device.sm = pick(random, {100U, 103U});
  device.num_sms = pick(random, {16, 64, 132, 148, 152, 160});
  if (random() % 2 == 0) {
    for (std::size_t size = 2; size < device.max_active_clusters.size(); ++size) {
      device.max_active_clusters[size] = static_cast<std::int32_t>(random() % 80);
    }
  }
  return device;
}

DeviceProfile b200() {
  DeviceProfile device;
  device.sm = 100;
  device.num_sms = 148;
  return device;
}

}  // namespace cubist::test
