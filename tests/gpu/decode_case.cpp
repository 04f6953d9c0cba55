#include "gpu/decode_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gpu/random.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kNoPage = 0x40000000;
/// Multiplications the reference may need: keeps a case well below a second.
constexpr double kMaxWork = 6e7;
/// MLA has 128 heads of 576 elements: fewer keys would never fill a few tiles.
constexpr double kMaxMlaWork = 2e8;

/// Lengths around which kernels go wrong: none, one, a page, a tile of 64, the split of 256.
int draw_kv_len(Random& random, int page_size) {
  const int border = random.pick({page_size, 2 * page_size, 16, 64, 128, 192, 256, 512});
  switch (random.between(0, 9)) {
    case 0:
      return 0;
    case 1:
      return random.between(1, 3);
    case 2:
    case 3:
      return std::max(border + random.between(-1, 1), 0);
    case 4:
    case 5:
      return random.between(1, 40);
    case 6:
    case 7:
      return random.between(1, 600);
    case 8:
      return random.between(600, 2600);
    default:
      return random.one_in(3) ? random.between(8100, 8300) : random.between(64, 1100);
  }
}

void draw_lengths(Random& random, double max_work, DecodeCase& made) {
  DecodeProblem& problem = made.problem;
  const int batch = random.between(1, 5);
  made.max_q_len = random.one_in(3) ? 1 : random.pick({1, 2, 3, 4, 5, 7, 8, 11, 16});
  made.gives_cum_seq_lens_q = random.one_in(2);
  problem.cum_seq_lens_q = {0};
  const double work_of_key = 2.0 * made.max_q_len * problem.num_q_heads * problem.head_dim * batch;
  const auto longest = static_cast<int>(max_work / work_of_key);
  for (int i = 0; i < batch; ++i) {
    const int q_len =
        made.gives_cum_seq_lens_q ? random.between(0, made.max_q_len) : made.max_q_len;
    problem.cum_seq_lens_q.push_back(problem.cum_seq_lens_q.back() + q_len);
    problem.seq_lens_kv.push_back(std::min(draw_kv_len(random, problem.page_size), longest));
  }
}

void draw_shape(Random& random, const DecodeVariant& variant, DecodeCase& made) {
  DecodeProblem& problem = made.problem;
  problem.head_dim = variant.head_dim;
  problem.head_dim_vo = variant.head_dim_vo;
  made.one_copy = variant.is_mla();
  problem.num_kv_heads = made.one_copy ? random.pick({1, 1, 1, 2}) : random.pick({1, 1, 2, 3, 8});
  const int heads_per_kv = made.one_copy
                               ? random.pick({1, 5, 16, 17, 24, 32, 64, 80, 128, 128, 130})
                               : random.pick({1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64, 130});
  problem.num_q_heads = problem.num_kv_heads * heads_per_kv;
  problem.page_size = 1 << random.between(variant.persistent ? 4 : 0, 7);
  draw_lengths(random, made.one_copy ? kMaxMlaWork : kMaxWork, made);
  problem.window_left = random.one_in(2)
                            ? -1
                            : random.pick({0, 1, 7, 62, 63, 64, 65, 127, 128, problem.page_size - 1,
                                           problem.page_size, random.between(1, 1000),
                                           std::numeric_limits<int>::max()});

  made.num_heads_per_cta = std::min(heads_per_kv, variant.tile_q);
  made.num_tokens_per_cta_q = std::max(1, variant.tile_q / heads_per_kv);
  if (random.one_in(6)) made.num_tokens_per_cta_q = random.between(1, made.num_tokens_per_cta_q);
  const int longest = *std::max_element(problem.seq_lens_kv.begin(), problem.seq_lens_kv.end());
  const int usual = std::clamp((longest + 255) / 256, 1, 64);
  made.num_ctas_kv = random.pick({1, usual, usual, random.between(2, 64)});
  if (variant.persistent && random.one_in(2)) made.num_ctas_kv = random.between(1, 16);
}

/// Every sequence gets its pages at random places; three pages belong to nobody.
void draw_pages(Random& random, DecodeProblem& problem, int& num_pages) {
  std::vector<int> needed;
  for (const int length : problem.seq_lens_kv) {
    needed.push_back((length + problem.page_size - 1) / problem.page_size);
  }
  problem.max_pages_per_seq =
      *std::max_element(needed.begin(), needed.end()) + random.between(0, 2);
  num_pages = std::accumulate(needed.begin(), needed.end(), 3);
  std::vector<int> order(static_cast<std::size_t>(num_pages));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1))]);
  }
  problem.block_table.assign(static_cast<std::size_t>(problem.batch() * problem.max_pages_per_seq),
                             kNoPage);
  std::size_t next = 0;
  for (int i = 0; i < problem.batch(); ++i) {
    for (int page = 0; page < needed[static_cast<std::size_t>(i)]; ++page) {
      problem.block_table[static_cast<std::size_t>(i * problem.max_pages_per_seq + page)] =
          order[next++];
    }
  }
}

/// HND or NHD, rows padded or not, K and V apart or halves of each page.
void draw_kv_layout(Random& random, DecodeCase& made, int num_pages) {
  DecodeProblem& problem = made.problem;
  made.nhd = random.one_in(2);
  const std::int64_t row = problem.head_dim + (random.one_in(4) ? 16 : 0);
  problem.kv_stride_tokens = made.nhd ? row * problem.num_kv_heads : row;
  problem.kv_stride_heads = made.nhd ? row : row * problem.page_size;
  const std::int64_t page = row * problem.num_kv_heads * problem.page_size;
  const bool combined = !made.one_copy && random.one_in(4);
  problem.kv_stride_pages = combined ? 2 * page : page;
  made.v_offset = combined ? page : 0;
  const auto elements = static_cast<std::size_t>(num_pages * problem.kv_stride_pages);
  problem.k.assign(elements, kNan);
  problem.v.assign(elements, kNan);
}

/// Strides are multiples of 16 bytes.
int elements_of_16_bytes(Dtype dtype) { return 128 / static_cast<int>(dtype_bits(dtype)); }

/// How large and how uneven the numbers are.
struct Numbers {
  float q = 1.0F;
  float k = 1.0F;
  float v = 1.0F;
  bool uneven_rows = false;  ///< rows of Q differ by up to 2^30
  int spike_one_in = 0;      ///< V of one key in so many is 64 times larger
};

Numbers draw_numbers(Random& random, const DecodeVariant& variant) {
  Numbers numbers;
  numbers.q = std::ldexp(1.0F, variant.dtype_q == Dtype::kE4m3   ? random.pick({0, 0, -3, 5})
                               : variant.dtype_q == Dtype::kFp16 ? random.pick({0, 0, -5, 5})
                                                                 : random.pick({0, 0, -40, 40}));
  numbers.k = variant.dtype_kv == Dtype::kE4m3 ? random.pick({1.0F, 0.01F, 40.0F})
                                               : random.pick({1.0F, 0.125F, 8.0F});
  numbers.v = random.pick({1.0F, 0.01F, 5.0F});
  numbers.uneven_rows = random.one_in(4);
  numbers.spike_one_in = random.pick({0, 0, 20, 64});
  return numbers;
}

/// The borders of what a row sees get spikes too: one key too many or too few shows.
bool is_border(const DecodeProblem& problem, std::size_t sequence, int key) {
  const int q_len = problem.cum_seq_lens_q[sequence + 1] - problem.cum_seq_lens_q[sequence];
  const int from_end = problem.seq_lens_kv[sequence] - key;
  if (from_end <= q_len + 1) return key % 2 == 0;
  const std::int64_t from_window = std::int64_t{from_end} - problem.window_left;
  return problem.window_left >= 0 && from_window >= 0 && from_window <= q_len + 1 && key % 2 == 0;
}

void fill_kv(Random& random, const DecodeVariant& variant, const Numbers& numbers,
             DecodeProblem& problem) {
  for (std::size_t sequence = 0; sequence < problem.seq_lens_kv.size(); ++sequence) {
    for (int key = 0; key < problem.seq_lens_kv[sequence]; ++key) {
      const bool spike = numbers.spike_one_in != 0 &&
                         (random.one_in(numbers.spike_one_in) || is_border(problem, sequence, key));
      const float v_scale = spike ? 64.0F * numbers.v : numbers.v;
      const std::int64_t page =
          problem.block_table[sequence * static_cast<std::size_t>(problem.max_pages_per_seq) +
                              static_cast<std::size_t>(key / problem.page_size)];
      for (int head = 0; head < problem.num_kv_heads; ++head) {
        const auto row = static_cast<std::size_t>(
            page * problem.kv_stride_pages + head * problem.kv_stride_heads +
            key % problem.page_size * problem.kv_stride_tokens);
        for (std::size_t i = row; i < row + static_cast<std::size_t>(problem.head_dim); ++i) {
          problem.k[i] = round_to(variant.dtype_kv, random.normal() * numbers.k);
          problem.v[i] = variant.is_mla() ? problem.k[i]
                                          : round_to(variant.dtype_kv, random.normal() * v_scale);
        }
      }
    }
  }
}

void fill_q(Random& random, const DecodeVariant& variant, const Numbers& numbers,
            DecodeProblem& problem) {
  const bool padded = random.one_in(3);
  const int unit = elements_of_16_bytes(variant.dtype_q);
  const int least = variant.dtype_q == Dtype::kE4m3 ? -6 : -30;  // what the type can hold
  problem.q_stride_heads = problem.head_dim + (padded ? unit : 0);
  problem.q_stride_tokens = problem.q_stride_heads * problem.num_q_heads + (padded ? 3 * unit : 0);
  problem.q.assign(static_cast<std::size_t>(problem.q_stride_tokens * (problem.sum_seq_q() + 1)),
                   kNan);
  for (int token = 0; token < problem.sum_seq_q(); ++token) {
    for (int head = 0; head < problem.num_q_heads; ++head) {
      float scale = numbers.q;
      if (numbers.uneven_rows) scale = std::ldexp(scale, random.between(least, 0));
      const auto row =
          static_cast<std::size_t>(token * problem.q_stride_tokens + head * problem.q_stride_heads);
      for (std::size_t i = row; i < row + static_cast<std::size_t>(problem.head_dim); ++i) {
        problem.q[i] = round_to(variant.dtype_q, random.normal() * scale);
      }
    }
  }
}

}  // namespace

DecodeCase make_decode_case(const DecodeVariant& variant, std::uint64_t seed) {
  Random random(seed);
  DecodeCase made;
  DecodeProblem& problem = made.problem;
  draw_shape(random, variant, made);
  draw_pages(random, problem, made.num_pages);
  draw_kv_layout(random, made, made.num_pages);
  const Numbers numbers = draw_numbers(random, variant);
  fill_kv(random, variant, numbers, problem);
  fill_q(random, variant, numbers, problem);

  // Scores of a few units, or peaked ones; single precision, as the kernel gets it.
  const double spread = random.pick({1.0, 1.0, 0.1, 6.0});
  problem.scale_log2 = static_cast<double>(static_cast<float>(
      spread * std::numbers::log2e / std::sqrt(static_cast<double>(problem.head_dim)) /
      static_cast<double>(numbers.q) / static_cast<double>(numbers.k)));
  problem.output_scale = static_cast<double>(random.pick({1.0F, 1.0F, 0.37F, -2.5F}));
  if (random.one_in(3)) {
    for (int i = 0; i < problem.num_q_heads; ++i) problem.sinks.push_back(3.0F * random.normal());
  }
  made.wants_lse = random.one_in(2);
  made.scales_on_device = random.one_in(3);
  made.pdl = random.one_in(2);
  const bool padded = random.one_in(3);
  const int unit = elements_of_16_bytes(variant.dtype_o);
  made.o_stride_heads = problem.head_dim_vo + (padded ? unit : 0);
  made.o_stride_tokens = made.o_stride_heads * problem.num_q_heads + (padded ? 2 * unit : 0);
  if (!variant.persistent) made.min_tiles_per_cta = random.pick({4, 4, 1, 2, 16});
  if (variant.dtype_o == Dtype::kE2m1) {
    // About what brings block scales into e4m3's range, and what leaves it at either end.
    made.o_sf_scale = random.pick({448.0F, 100.0F, 1.0F, 0.02F, 3e4F}) /
                      (numbers.v * std::fabs(static_cast<float>(problem.output_scale)));
    made.o_sf_start_index = random.pick({0, 0, 1, 31, 127, 500});
  }
  return made;
}

std::string DecodeCase::text() const {
  return fmt::format(
      "heads {}/{} head_dim {} max_q_len {} cum_q [{}] kv [{}] page {} {} window {} sinks {} "
      "ctas_kv "
      "{} tokens_per_cta {}",
      problem.num_q_heads, problem.num_kv_heads, problem.head_dim, max_q_len,
      fmt::join(problem.cum_seq_lens_q, " "), fmt::join(problem.seq_lens_kv, " "),
      problem.page_size, nhd ? "NHD" : "HND", problem.window_left,
      problem.sinks.empty() ? "no" : "yes", num_ctas_kv, num_tokens_per_cta_q);
}

}  // namespace cubist::test
