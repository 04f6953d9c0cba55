#include "gpu/aux_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/derived_problem.h"

namespace cubist::test {
namespace {

struct Types {
  Dtype q;
  Dtype o;
};

constexpr Types kTypes[] = {{Dtype::kBf16, Dtype::kBf16},
                            {Dtype::kFp16, Dtype::kFp16},
                            {Dtype::kE4m3, Dtype::kBf16},
                            {Dtype::kE4m3, Dtype::kFp16},
                            {Dtype::kE4m3, Dtype::kE4m3}};

/// Fewer partial results than CTAs, as many, and CTAs with several tiles of keys.
ReduceCase sweep_case(const Types& types, int tile_q, int columns, bool groups_tokens) {
  ReduceCase made;
  made.dtype_q = types.q;
  made.dtype_o = types.o;
  made.tile_q = tile_q;
  made.columns = columns;
  made.num_head_dim_ctas = columns == 512 ? 1 : 2;
  made.groups_tokens = groups_tokens;
  made.kv_lens = {40, 129, 700};
  made.ctas_per_tile = 2;
  made.seed = static_cast<std::uint64_t>(tile_q + 1000 * columns + (groups_tokens ? 1 : 0));
  if (groups_tokens) {
    made.num_q_heads = 16;
    made.num_kv_heads = 2;
    made.max_q_len = tile_q / 8 + 3;
  } else {
    made.num_q_heads = tile_q - 24;
    made.max_q_len = 2;
  }
  return made;
}

void add_sweep(std::vector<ReduceCase>& cases, bool reduced) {
  for (const Types& types : kTypes) {
    for (const int tile_q : {64, 128}) {
      for (const int columns : {64, 128, 256, 512}) {
        for (const bool groups_tokens : {false, true}) {
          ReduceCase made = sweep_case(types, tile_q, columns, groups_tokens);
          if (reduced) made.kv_lens = {140, 1};
          if (reduced && (columns == 128 || columns == 512) != groups_tokens) continue;
          cases.push_back(made);
        }
      }
    }
  }
}

ReduceCase grouped_case() {
  ReduceCase made;
  made.columns = 64;
  made.num_q_heads = 24;
  made.num_kv_heads = 2;
  made.groups_tokens = true;  // five tokens of twelve heads; four rows to spare
  made.max_q_len = 8;
  made.kv_lens = {300, 131, 10};
  return made;
}

ReduceCase mla_case() {
  ReduceCase made;
  made.columns = 256;
  made.num_head_dim_ctas = 2;
  made.num_q_heads = 40;
  made.max_q_len = 2;
  made.kv_lens = {300, 129, 2};
  return made;
}

void add_lengths(std::vector<ReduceCase>& cases) {
  ReduceCase fixed_grouped = grouped_case();  // O rows of the second sequence on
  cases.push_back(fixed_grouped);

  ReduceCase varlen = grouped_case();
  varlen.q_lens = {8, 0, 3};
  cases.push_back(varlen);
  varlen = mla_case();
  varlen.max_q_len = 4;
  varlen.q_lens = {1, 4, 0};
  cases.push_back(varlen);

  // The last token of a grouped tile sees a 128-key tile more than the first, and the sequence is
  // shorter than the longest: both count entries.
  ReduceCase boundary = grouped_case();
  boundary.q_lens = {6, 3, 1};
  boundary.kv_lens = {257, 258, 129};
  boundary.num_ctas_kv = 8;
  cases.push_back(boundary);
  boundary.poisons_entries_without_keys = true;
  cases.push_back(boundary);

  ReduceCase no_keys = grouped_case();  // of some rows of a tile, of a tile, of a sequence
  no_keys.kv_lens = {6, 0, 3};
  cases.push_back(no_keys);
  no_keys.poisons_entries_without_keys = true;
  cases.push_back(no_keys);
  no_keys.sinks = true;
  cases.push_back(no_keys);
}

void add_sparse(std::vector<ReduceCase>& cases) {
  ReduceCase fixed_topk = mla_case();
  fixed_topk.sparse_topk = 160;
  cases.push_back(fixed_topk);

  for (const int columns : {128, 256, 512}) {
    ReduceCase dynamic = mla_case();
    dynamic.columns = columns;
    dynamic.num_head_dim_ctas = 512 / columns;
    dynamic.sparse_topk = 512;
    dynamic.q_lens = {2, 1, 2};
    dynamic.topk_lens = {512, 17, 0, 129, 128};
    cases.push_back(dynamic);
    dynamic.q_lens.clear();
    dynamic.topk_lens = {300, 1, 128, 0, 511, 129};
    cases.push_back(dynamic);
  }
}

void add_sinks(std::vector<ReduceCase>& cases) {
  for (const float offset : {0.0F, 90.0F, -90.0F}) {
    for (const Types& types : kTypes) {
      ReduceCase made = grouped_case();
      made.dtype_q = types.q;
      made.dtype_o = types.o;
      made.sinks = true;
      made.sink_offset = offset;
      cases.push_back(made);
    }
  }
}

void add_geometry(std::vector<ReduceCase>& cases) {
  for (const int workers : {1, 3, 8}) {
    ReduceCase made = mla_case();
    made.ctas_per_tile = workers;
    cases.push_back(made);
  }
  ReduceCase pair = mla_case();  // two head tiles of 64 rows with all 512 columns
  pair.two_cta_mma = true;
  pair.columns = 512;
  pair.num_head_dim_ctas = 1;
  pair.num_q_heads = 128;
  cases.push_back(pair);

  ReduceCase many_columns = mla_case();
  many_columns.columns = 64;
  many_columns.num_head_dim_ctas = 8;
  cases.push_back(many_columns);

  ReduceCase one_cta = mla_case();
  one_cta.num_ctas_kv = 1;
  cases.push_back(one_cta);

  ReduceCase many_ctas = grouped_case();
  many_ctas.num_ctas_kv = 11;
  many_ctas.kv_lens = {1400, 1281, 1};
  cases.push_back(many_ctas);

  ReduceCase wide_group = mla_case();  // two head CTAs of 64 heads share one KV head
  wide_group.num_q_heads = 128;
  cases.push_back(wide_group);
}

void add_scales(std::vector<ReduceCase>& cases) {
  ReduceCase made = grouped_case();
  made.scale_on_device = true;
  cases.push_back(made);
  made.scale = 3.0F;  // weights that differ by many powers of two
  cases.push_back(made);
  made.wants_lse = false;
  cases.push_back(made);
}

std::uint32_t as_unsigned(int value) { return static_cast<std::uint32_t>(value); }

AttentionProblem problem_of(const ReduceCase& made) {
  AttentionProblem p;
  p.dtype_q = made.dtype_q;
  p.dtype_k = p.dtype_v = made.dtype_q;
  p.dtype_o = made.dtype_o;
  p.head_dim_qk = p.head_dim_vo = made.head_dim_vo();
  p.num_q_heads = made.num_q_heads;
  p.num_kv_heads = made.num_kv_heads;
  p.batch = made.batch();
  p.max_q_len = made.max_q_len;
  p.sum_seq_q = made.sum_seq_q();
  p.varlen_q = !made.q_lens.empty();
  p.sinks = made.sinks;
  p.lse = made.wants_lse;
  p.lse_stride_tokens = made.num_q_heads + 3;
  p.sparse_mla_topk = made.sparse_topk;
  p.sparse_dynamic = !made.topk_lens.empty();
  p.bmm1_scale = {static_cast<double>(made.scale), made.scale_on_device};
  p.bmm2_scale.value = static_cast<double>(made.output_scale);
  return with_derived_fields(p);
}

KernelTraits traits_of(const ReduceCase& made) {
  const auto narrow = [](int value) { return static_cast<std::uint16_t>(value); };
  KernelTraits t;
  t.dtype_q = made.dtype_q;
  t.dtype_k = t.dtype_v = made.dtype_q;
  t.dtype_o = made.dtype_o;
  t.head_dim_qk = t.head_dim_vo = narrow(made.head_dim_vo());
  t.head_dim_per_cta_v = narrow(made.two_cta_mma ? made.columns / 2 : made.columns);
  t.tile_q = t.step_q = narrow(made.tile_q);
  t.tile_kv = t.step_kv = 128;
  t.kernel_type = KernelType::kKeepsMmaAbGeneration;
  t.multi_ctas_kv_mode = MultiCtasKvMode::kSeparateReduction;
  t.groups_heads_q = true;
  t.groups_tokens_heads_q = made.groups_tokens;
  t.two_cta_mma = made.two_cta_mma;
  if (made.sparse_topk > 0) {
    t.sparse_type = made.topk_lens.empty() ? SparseType::kStaticTokens : SparseType::kDynamicTokens;
  }
  return t;
}

}  // namespace

std::int64_t ReduceCase::first_token(int sequence) const {
  std::int64_t token = 0;
  for (int i = 0; i < sequence; ++i) token += q_len(i);
  return token;
}

std::string ReduceCase::text() const {
  return fmt::format(
      "q {} o {} tile_q {} columns {}x{}{} heads {}/{}{} max_q_len {} q_lens [{}] kv_lens [{}] "
      "num_ctas_kv {} workers {} topk {} [{}]{}{}{}{} scale {}",
      to_string(dtype_q), to_string(dtype_o), tile_q, columns, num_head_dim_ctas,
      two_cta_mma ? " 2-CTA" : "", num_q_heads, num_kv_heads, groups_tokens ? " grouped" : "",
      max_q_len, fmt::join(q_lens, " "), fmt::join(kv_lens, " "), num_ctas_kv, ctas_per_tile,
      sparse_topk, fmt::join(topk_lens, " "),
      sinks ? fmt::format(" sinks {:+}", sink_offset) : std::string(), wants_lse ? " lse" : "",
      scale_on_device ? " device scale" : "",
      poisons_entries_without_keys ? " poisoned entries without keys" : "", scale);
}

ReduceLaunch launch_of(const ReduceCase& made) {
  ReduceLaunch launch;
  launch.problem = problem_of(made);
  launch.record = std::make_unique<KernelRecord>();
  launch.record->traits = traits_of(made);
  LaunchPlan& plan = launch.plan;
  plan.record = launch.record.get();
  plan.num_ctas_q = made.num_ctas_q();
  plan.num_ctas_kv = made.num_ctas_kv;
  plan.num_tokens_per_cta_q = made.tokens_per_cta();
  plan.num_heads_per_cta = made.heads_per_cta();
  const int head_ctas = made.num_q_heads / made.heads_per_cta();
  const int rows_y = head_ctas * made.num_head_dim_ctas;
  plan.grid = {as_unsigned(made.num_ctas_q() * made.num_ctas_kv), as_unsigned(rows_y),
               as_unsigned(made.batch())};
  plan.reduction.needed = true;
  plan.reduction.grid = {as_unsigned(made.num_ctas_q() * made.ctas_per_tile), as_unsigned(rows_y),
                         as_unsigned(made.batch())};
  plan.reduction.block = 512;
  plan.reduction.ctas_per_tile = made.ctas_per_tile;
  plan.reduction.num_head_ctas = head_ctas;
  plan.reduction.num_head_dim_ctas = made.num_head_dim_ctas;
  plan.reduction.head_dim_per_cta = made.columns;
  launch.num_sms = static_cast<std::int32_t>(plan.grid[0] * plan.grid[1] * plan.grid[2]);
  const auto entries = static_cast<std::uint32_t>(made.sum_seq_q() * made.num_q_heads);
  plan.lse.needed = made.wants_lse;
  plan.lse.block = 256;
  plan.lse.grid = {(entries + 255) / 256, 1, 1};
  return launch;
}

std::vector<ReduceCase> reduce_cases(bool reduced) {
  std::vector<ReduceCase> cases;
  add_sweep(cases, reduced);
  add_lengths(cases);
  add_sparse(cases);
  add_sinks(cases);
  add_geometry(cases);
  add_scales(cases);
  return cases;
}

}  // namespace cubist::test
