#include "support/fake_decode.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "model/decode_params.h"
#include "model/dtype.h"
#include "reference/decode_reference.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

/// What the name of a cubist_decode kernel says: ..._q_bf16_kv_e4m3_o_bf16_h64_..., MLA:
/// ..._h576v512_...
struct KernelName {
  Dtype dtype_q = Dtype::kUnknown;
  Dtype dtype_kv = Dtype::kUnknown;
  Dtype dtype_o = Dtype::kUnknown;
  int head_dim = 0;
  int head_dim_vo = 0;
};

std::optional<std::string_view> word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find('_'));
}

std::optional<KernelName> parse_name(std::string_view name) {
  if (!name.starts_with("cubist_decode_")) return std::nullopt;
  const auto q = word_after(name, "_q_");
  const auto kv = word_after(name, "_kv_");
  const auto o = word_after(name, "_o_");
  const auto head_dim = word_after(name, "_h");
  if (!q || !kv || !o || !head_dim) return std::nullopt;
  const std::size_t v = head_dim->find('v');
  const int qk = std::stoi(std::string(head_dim->substr(0, v)));
  return KernelName{
      parse_dtype(*q).value(), parse_dtype(*kv).value(), parse_dtype(*o).value(), qk,
      v == std::string_view::npos ? qk : std::stoi(std::string(head_dim->substr(v + 1)))};
}

float load(Dtype dtype, const void* base, std::int64_t element) {
  std::uint16_t bits = 0;
  const std::int64_t bytes = dtype_bits(dtype) / 8;
  std::memcpy(&bits, static_cast<const char*>(base) + element * bytes,
              static_cast<std::size_t>(bytes));
  return decode_number(dtype, bits);
}

void store(Dtype dtype, void* base, std::int64_t element, double value) {
  const std::uint16_t bits = encode_number(dtype, static_cast<float>(value));
  std::memcpy(static_cast<char*>(base) + element * 2, &bits, 2);
}

/// The launch's inputs, gathered through its own strides and page table into a problem whose keys
/// lie one behind the other (pages of one key).
class Gathered {
 public:
  Gathered(const KernelName& name, const CubistDecodeParams& params) : name_(name), p_(params) {
    problem_.head_dim = name.head_dim;
    problem_.head_dim_vo = name.head_dim_vo;
    problem_.num_q_heads = params.num_q_heads;
    problem_.num_kv_heads = params.num_kv_heads;
    problem_.window_left = params.window_left;
    problem_.scale_log2 = static_cast<double>(
        params.bmm1_scale_log2 != nullptr ? *params.bmm1_scale_log2 : params.scale_softmax_log2);
    problem_.output_scale = static_cast<double>(params.bmm2_scale != nullptr ? *params.bmm2_scale
                                                                             : params.output_scale);
    problem_.kv_stride_heads = name.head_dim;
    problem_.kv_stride_tokens = problem_.kv_stride_pages =
        std::int64_t{name.head_dim} * params.num_kv_heads;
    if (params.sinks != nullptr) {
      problem_.sinks.assign(params.sinks, params.sinks + params.num_q_heads);
    }
    gather_lengths();
    for (int sequence = 0; sequence < params.batch; ++sequence) gather_kv(sequence);
    gather_q();
  }

  const DecodeProblem& problem() const { return problem_; }

 private:
  void gather_lengths() {
    problem_.cum_seq_lens_q = {0};
    for (int i = 0; i < p_.batch; ++i) {
      const int q_len = p_.cum_seq_lens_q != nullptr
                            ? p_.cum_seq_lens_q[i + 1] - p_.cum_seq_lens_q[i]
                            : p_.max_q_len;
      problem_.cum_seq_lens_q.push_back(problem_.cum_seq_lens_q.back() + q_len);
      problem_.seq_lens_kv.push_back(p_.seq_lens_kv[i]);
      problem_.max_pages_per_seq = std::max(problem_.max_pages_per_seq, p_.seq_lens_kv[i]);
    }
    problem_.block_table.resize(static_cast<std::size_t>(p_.batch * problem_.max_pages_per_seq));
  }

  void gather_kv(int sequence) {
    const int page_size = 1 << p_.page_size_log2;
    const bool is_mla = name_.head_dim != name_.head_dim_vo;  // V is the beginning of K
    for (int key = 0; key < p_.seq_lens_kv[sequence]; ++key) {
      const std::int64_t page =
          p_.block_table[static_cast<std::int64_t>(sequence) * p_.max_pages_per_seq +
                         key / page_size];
      problem_.block_table[static_cast<std::size_t>(sequence * problem_.max_pages_per_seq + key)] =
          next_key_++;
      for (int head = 0; head < p_.num_kv_heads; ++head) {
        const std::int64_t k = page * p_.k_stride_pages + head * p_.k_stride_heads +
                               key % page_size * p_.k_stride_tokens;
        const std::int64_t v = page * p_.v_stride_pages + head * p_.v_stride_heads +
                               key % page_size * p_.v_stride_tokens;
        for (int i = 0; i < name_.head_dim; ++i) {
          problem_.k.push_back(load(name_.dtype_kv, p_.k, k + i));
          problem_.v.push_back(load(name_.dtype_kv, is_mla ? p_.k : p_.v, v + i));
        }
      }
    }
  }

  void gather_q() {
    problem_.q_stride_heads = name_.head_dim;
    problem_.q_stride_tokens = std::int64_t{name_.head_dim} * p_.num_q_heads;
    for (int token = 0; token < problem_.sum_seq_q(); ++token) {
      for (int head = 0; head < p_.num_q_heads; ++head) {
        const std::int64_t row = token * p_.q_stride_tokens + head * p_.q_stride_heads;
        for (int i = 0; i < name_.head_dim; ++i) {
          problem_.q.push_back(load(name_.dtype_q, p_.q, row + i));
        }
      }
    }
  }

  KernelName name_;
  CubistDecodeParams p_;
  DecodeProblem problem_;
  std::int32_t next_key_ = 0;
};

void write_outputs(const KernelName& name, const CubistDecodeParams& p, const DecodeAnswer& answer,
                   int sum_seq_q) {
  for (int token = 0; token < sum_seq_q; ++token) {
    for (int head = 0; head < p.num_q_heads; ++head) {
      const auto row = static_cast<std::size_t>(token * p.num_q_heads + head);
      for (int i = 0; i < name.head_dim_vo; ++i) {
        store(
            name.dtype_o, p.o, token * p.o_stride_tokens + head * p.o_stride_heads + i,
            answer
                .o[row * static_cast<std::size_t>(name.head_dim_vo) + static_cast<std::size_t>(i)]);
      }
      if (p.lse != nullptr) p.lse[row] = static_cast<float>(answer.lse[row]);
    }
  }
}

/// The workspace as the kernel uses it: counters that are not zero spoil the result, and what
/// follows them is overwritten.
bool workspace_is_clean(const FakeLaunch& launch, const CubistDecodeParams& p) {
  if (p.num_ctas_kv <= 1) return true;
  const std::int64_t tiles =
      static_cast<std::int64_t>(p.num_ctas_q) * launch.grid[1] * launch.grid[2];
  for (std::int64_t i = 0; i < tiles; ++i) {
    if (p.counters[i] != 0) return false;
  }
  const std::int64_t rows = tiles * p.num_ctas_kv * p.num_heads_per_cta * p.num_tokens_per_cta_q;
  std::memset(p.partial_stats, 0xff, static_cast<std::size_t>(rows) * 8);
  return true;
}

}  // namespace

bool run_fake_kernel(const FakeLaunch& launch) {
  const std::optional<KernelName> name = parse_name(launch.function);
  if (!name || launch.params.size() != sizeof(CubistDecodeParams)) return true;
  CubistDecodeParams params;
  std::memcpy(&params, launch.params.data(), sizeof(params));
  if (!workspace_is_clean(launch, params)) return false;
  const Gathered gathered(*name, params);
  const DecodeAnswer answer = decode_reference(gathered.problem());
  write_outputs(*name, params, answer, gathered.problem().sum_seq_q());
  return true;
}

}  // namespace cubist::test
