#include "launcher/call_checks.h"

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "launcher/nvfp4_output.h"

namespace cubist::launcher {
namespace {

// The kernels load and store 16 bytes at a time.
constexpr std::uint64_t kVectorBytes = 16;

/// An optional tensor is given exactly where the problem that was selected for has it.
Status check_optional(std::string_view name, std::uint64_t address, std::string_view field,
                      bool in_problem) {
  if (in_problem) {
    if (address == 0) {
      return fail(StatusCode::kInvalidArgument, "{} is NULL, but the problem says {} = true", name,
                  field);
    }
    return check_address(name, address, sizeof(float));
  }
  if (address == 0) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is given, but the problem that was selected for says {} = false", name, field);
}

Status check_device_scalar(std::string_view name, std::uint64_t address) {
  return address == 0 ? Status{} : check_address(name, address, sizeof(float));
}

/// One dimension of a tensor: how many entries, and the distance from one to the next.
struct Dimension {
  std::string_view stride_name;  ///< empty: a dimension whose stride nobody gives
  std::int64_t count = 0;
  std::int64_t stride = 0;  ///< elements
};

Status check_tensor(std::string_view tensor, Dtype dtype, std::initializer_list<Dimension> dims) {
  const std::int64_t bits = dtype_bits(dtype);
  std::int64_t last = 0;  // index of the last element
  for (const Dimension& dim : dims) {
    if (dim.stride < 0 || static_cast<std::uint64_t>(dim.stride) *
                                  static_cast<std::uint64_t>(bits) % (8 * kVectorBytes) !=
                              0) {
      return fail(StatusCode::kInvalidArgument,
                  "{} is {} elements of {}; strides must be at least 0 and a multiple of {} bytes",
                  dim.stride_name, dim.stride, to_string(dtype), kVectorBytes);
    }
    std::int64_t distance = 0;
    if (dim.count < 1 || __builtin_mul_overflow(dim.count - 1, dim.stride, &distance) ||
        __builtin_add_overflow(last, distance, &last)) {
      return fail(StatusCode::kInvalidArgument,
                  "{}: {} entries at a distance of {} elements ({}) cannot be addressed", tensor,
                  dim.count, dim.stride, dim.stride_name);
    }
  }
  std::int64_t end = 0;
  if (__builtin_add_overflow(last, 1, &end) || __builtin_mul_overflow(end, bits, &end)) {
    return fail(StatusCode::kInvalidArgument, "{} ends at element {}, beyond 63 bits of bytes",
                tensor, last);
  }
  return {};
}

Status check_values(const AttentionProblem& p, const CallArgs& args) {
  if (!p.is_mla) return check_address("v", args.v, kVectorBytes);
  if (args.v == 0 || args.v == args.k) return {};
  return fail(
      StatusCode::kInvalidArgument,
      "v is {:#x} and k is {:#x}, but the problem says is_mla = true: V is K; give the same "
      "address or leave v out",
      args.v, args.k);
}

Status check_shapes(const AttentionProblem& p) {
  if (p.page_size < 1 || !std::has_single_bit(static_cast<std::uint32_t>(p.page_size))) {
    return fail(StatusCode::kInvalidArgument, "page_size is {}; it must be a power of two",
                p.page_size);
  }
  const std::int64_t tokens = std::int64_t{p.max_pages_per_seq} * p.page_size;
  if (p.max_kv_len > tokens) {
    return fail(StatusCode::kInvalidArgument,
                "max_kv_len is {}, but a block_table row of {} pages with {} tokens holds {}",
                p.max_kv_len, p.max_pages_per_seq, p.page_size, tokens);
  }
  const std::int64_t rows = std::int64_t{p.batch} * p.max_q_len;
  if (!p.varlen_q && p.sum_seq_q != rows) {
    return fail(StatusCode::kInvalidArgument,
                "sum_seq_q is {}; without varlen_q every sequence has max_q_len tokens, so it must "
                "be {}",
                p.sum_seq_q, rows);
  }
  return {};
}

Status check_tensors(const AttentionProblem& p, const CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(check_tensor("q", p.dtype_q,
                                      {{"q_stride_tokens", p.sum_seq_q, p.q_stride_tokens},
                                       {"q_stride_heads", p.num_q_heads, p.q_stride_heads}}));
  CUBIST_RETURN_IF_ERROR(check_tensor("k and v", p.dtype_k,
                                      {{"kv_stride_batch", p.num_pages, p.kv_stride_batch},
                                       {"kv_stride_heads", p.num_kv_heads, p.kv_stride_heads},
                                       {"kv_stride_tokens", p.page_size, p.kv_stride_tokens}}));
  const OutputStrides o = output_strides(p, args);
  return check_tensor(
      "o", p.dtype_o,
      {{"o_stride_tokens", p.sum_seq_q, o.tokens}, {"o_stride_heads", p.num_q_heads, o.heads}});
}

/// An nvfp4 output's second tensor; another output has none.
Status check_block_scales(const AttentionProblem& p, const CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(check_nvfp4_output(p, args.o_sf));
  if (p.dtype_o == Dtype::kE2m1 || (!args.o_sf_scale && !args.o_sf_start_index)) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is given, but dtype_o is {}; it belongs to an nvfp4 output (e2m1)",
              args.o_sf_scale ? "o_sf_scale" : "o_sf_start_index", to_string(p.dtype_o));
}

/// Arguments of the trtllm-gen family alone.
Status check_absent(const CallArgs& args) {
  struct Argument {
    std::string_view name;
    bool given;
  };
  const Argument arguments[] = {
      {"cum_seq_lens_kv", args.cum_seq_lens_kv != 0},
      {"k_sf", args.k_sf != 0},
      {"v_sf", args.v_sf != 0},
      {"sliding_pool", args.sliding_pool != 0},
      {"topk_lens", args.topk_lens != 0},
      {"sage_scales", args.sage_scales != decltype(args.sage_scales){}},
  };
  for (const Argument& argument : arguments) {
    if (!argument.given) continue;
    return fail(StatusCode::kInvalidArgument,
                "{} is given, but cubist_decode kernels have no such argument; leave it out",
                argument.name);
  }
  return {};
}

}  // namespace

Status check_address(std::string_view name, std::uint64_t address, std::uint64_t alignment) {
  if (address == 0) return fail(StatusCode::kInvalidArgument, "{} is NULL", name);
  if (address % alignment == 0) return {};
  return fail(StatusCode::kInvalidArgument, "{} is {:#x}; it must be aligned to {} bytes", name,
              address, alignment);
}

Status check_output(const AttentionProblem& p, const CallArgs& args, bool dense) {
  if (args.o_layout) return check_output_layout(p, *args.o_layout, dense);
  // Strides without a layout are those of the three-dimensional output.
  TensorLayout layout = output_layout(p);
  const OutputStrides strides = output_strides(p, args);
  layout.strides[0] = strides.tokens;
  layout.strides[1] = strides.heads;
  return check_output_layout(p, layout, dense);
}

Status check_decode_call(const AttentionProblem& p, const CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(check_address("q", args.q, kVectorBytes));
  CUBIST_RETURN_IF_ERROR(check_address("k", args.k, kVectorBytes));
  CUBIST_RETURN_IF_ERROR(check_values(p, args));
  CUBIST_RETURN_IF_ERROR(check_address("o", args.o, kVectorBytes));
  CUBIST_RETURN_IF_ERROR(check_address("block_table", args.block_table, sizeof(std::int32_t)));
  CUBIST_RETURN_IF_ERROR(check_address("seq_lens_kv", args.seq_lens_kv, sizeof(std::int32_t)));
  CUBIST_RETURN_IF_ERROR(
      check_optional("cum_seq_lens_q", args.cum_seq_lens_q, "varlen_q", p.varlen_q));
  CUBIST_RETURN_IF_ERROR(check_optional("sinks", args.sinks, "sinks", p.sinks));
  CUBIST_RETURN_IF_ERROR(check_optional("lse", args.lse, "lse", p.lse));
  CUBIST_RETURN_IF_ERROR(check_device_scalar("bmm1_scale_log2", args.bmm1_scale_log2));
  CUBIST_RETURN_IF_ERROR(check_device_scalar("bmm2_scale", args.bmm2_scale));
  CUBIST_RETURN_IF_ERROR(check_absent(args));
  CUBIST_RETURN_IF_ERROR(check_shapes(p));
  CUBIST_RETURN_IF_ERROR(check_block_scales(p, args));
  CUBIST_RETURN_IF_ERROR(check_output(p, args, false));
  return check_tensors(p, args);
}

}  // namespace cubist::launcher
