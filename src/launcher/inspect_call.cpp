#include "launcher/inspect_call.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "launcher/nvfp4_output.h"

namespace cubist::launcher {
namespace {

struct Dimension {
  std::int64_t count = 0;
  std::int64_t stride = 0;  ///< elements
};

/// Bytes from a tensor's first element to the end of its last; checked before by the launch's
/// rules.
std::uint64_t extent_bytes(Dtype dtype, std::initializer_list<Dimension> dims) {
  std::int64_t last = 0;
  for (const Dimension& dim : dims) last += std::max<std::int64_t>(dim.count - 1, 0) * dim.stride;
  return (static_cast<std::uint64_t>(last + 1) * dtype_bits(dtype) + 7) / 8;
}

class Inspection {
 public:
  Inspection(const driver::Driver& driver, const ContextInfo& context)
      : driver_(driver), context_(context) {}

  /// `bytes` from `address` on are one piece of this device's memory; an address of 0 is none.
  Status check_memory(std::string_view name, std::uint64_t address, std::uint64_t bytes) const {
    if (address == 0) return {};
    int ordinal = -1;
    if (ask(cuda::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, ordinal) != cuda::CUDA_SUCCESS) {
      return fail(StatusCode::kInvalidArgument,
                  "{} is {:#x}, which is no memory that the CUDA driver knows; pass a device "
                  "address",
                  name, address);
    }
    if (ordinal != context_.ordinal) {
      return fail(StatusCode::kInvalidArgument,
                  "{} is {:#x}, memory of device {}, but the current context is of device {}; all "
                  "tensors must be on one device",
                  name, address, ordinal, context_.ordinal);
    }
    cuda::CUdeviceptr start = 0;
    std::size_t size = 0;
    if (ask(cuda::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address, start) != cuda::CUDA_SUCCESS ||
        ask(cuda::CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, size) != cuda::CUDA_SUCCESS) {
      return {};  // memory without a range of its own
    }
    const std::uint64_t left = start + size - address;
    if (bytes <= left) return {};
    return fail(StatusCode::kInvalidArgument,
                "{} is {:#x} with {} bytes up to the end of its allocation; its shape and strides "
                "need {}",
                name, address, left, bytes);
  }

  Result<std::vector<std::int32_t>> read(std::string_view name, std::uint64_t address,
                                         std::int64_t count) const {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    const std::size_t bytes = values.size() * sizeof(std::int32_t);
    CUBIST_RETURN_IF_ERROR(check_memory(name, address, bytes));
    CUBIST_RETURN_IF_ERROR(
        driver_.check(driver_.table().cuMemcpyDtoH(values.data(), address, bytes), "cuMemcpyDtoH"));
    return values;
  }

 private:
  template <class T>
  cuda::CUresult ask(cuda::CUpointer_attribute attribute, std::uint64_t address, T& value) const {
    return driver_.table().cuPointerGetAttribute(&value, attribute, address);
  }

  const driver::Driver& driver_;
  const ContextInfo& context_;
};

Status check_lengths(const AttentionProblem& p, const std::vector<std::int32_t>& lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 0 && lengths[i] <= p.max_kv_len) continue;
    return fail(StatusCode::kInvalidArgument,
                "seq_lens_kv[{}] is {}; it must be 0..max_kv_len, which is {}", i, lengths[i],
                p.max_kv_len);
  }
  return {};
}

Status check_cumulative(std::string_view name, const std::vector<std::int32_t>& sums,
                        std::int32_t max_len, std::int64_t total) {
  if (sums.front() != 0) {
    return fail(StatusCode::kInvalidArgument, "{}[0] is {}; it must be 0", name, sums.front());
  }
  for (std::size_t i = 0; i + 1 < sums.size(); ++i) {
    const std::int64_t length = std::int64_t{sums[i + 1]} - sums[i];
    if (length >= 0 && length <= max_len) continue;
    return fail(StatusCode::kInvalidArgument,
                "{}[{}] is {} and {}[{}] is {}: sequence {} has {} tokens; it must have 0..{}",
                name, i, sums[i], name, i + 1, sums[i + 1], i, length, max_len);
  }
  if (sums.back() <= total) return {};
  return fail(StatusCode::kInvalidArgument, "{}[{}] is {}; the problem says {} tokens in all", name,
              sums.size() - 1, sums.back(), total);
}

/// The pages that sequences use; returns the largest number among them, -1 if they use none.
Result<std::int32_t> largest_page(const AttentionProblem& p,
                                  const std::vector<std::int32_t>& lengths,
                                  const std::vector<std::int32_t>& table) {
  std::int32_t largest = -1;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int32_t pages = (lengths[i] + p.page_size - 1) / p.page_size;
    for (std::int32_t j = 0; j < pages; ++j) {
      const std::int32_t page =
          table[i * static_cast<std::size_t>(p.max_pages_per_seq) + static_cast<std::size_t>(j)];
      if (page < 0) {
        return fail(StatusCode::kInvalidArgument,
                    "block_table[{}][{}] is {}; sequence {} has {} tokens, so that page is read", i,
                    j, page, i, lengths[i]);
      }
      largest = std::max(largest, page);
    }
  }
  return largest;
}

/// K and V up to the end of their page `last`.
Status check_pages(const Inspection& inspection, const AttentionProblem& p, const CallArgs& args,
                   std::int32_t last) {
  const auto bytes = [&](Dtype dtype, std::int32_t head_dim) {
    return extent_bytes(dtype, {{last + 1, p.kv_stride_batch},
                                {p.num_kv_heads, p.kv_stride_heads},
                                {p.page_size, p.kv_stride_tokens},
                                {head_dim, 1}});
  };
  if (last < 0) return {};
  const std::string of_page = fmt::format(" up to page {} of the block_table", last);
  CUBIST_RETURN_IF_ERROR(
      inspection.check_memory("k" + of_page, args.k, bytes(p.dtype_k, p.head_dim_qk)));
  return inspection.check_memory("v" + of_page, args.v, bytes(p.dtype_v, p.head_dim_vo));
}

Status check_paged_kv(const Inspection& inspection, const AttentionProblem& p,
                      const CallArgs& args) {
  CUBIST_ASSIGN_OR_RETURN(const auto lengths,
                          inspection.read("seq_lens_kv", args.seq_lens_kv, p.batch));
  CUBIST_RETURN_IF_ERROR(check_lengths(p, lengths));
  // Two tables in one, or token indices: their first rows are not a sequence's pages.
  if (!p.uses_shared_paged_kv_idx || p.sparse_mla_topk > 0) return {};
  CUBIST_ASSIGN_OR_RETURN(const auto table,
                          inspection.read("block_table", args.block_table,
                                          std::int64_t{p.batch} * p.max_pages_per_seq));
  CUBIST_ASSIGN_OR_RETURN(const std::int32_t last, largest_page(p, lengths, table));
  return check_pages(inspection, p, args, last);
}

Status check_ragged_kv(const Inspection& inspection, const AttentionProblem& p,
                       const CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(
      inspection.check_memory("k", args.k,
                              extent_bytes(p.dtype_k, {{p.sum_seq_kv, p.k_stride_tokens},
                                                       {p.num_kv_heads, p.k_stride_heads},
                                                       {p.head_dim_qk, 1}})));
  return inspection.check_memory("v", args.v,
                                 extent_bytes(p.dtype_v, {{p.sum_seq_kv, p.v_stride_tokens},
                                                          {p.num_kv_heads, p.v_stride_heads},
                                                          {p.head_dim_vo, 1}}));
}

Status check_cumulative_lengths(const Inspection& inspection, const AttentionProblem& p,
                                const CallArgs& args) {
  if (args.cum_seq_lens_q != 0) {
    CUBIST_ASSIGN_OR_RETURN(const auto sums, inspection.read("cum_seq_lens_q", args.cum_seq_lens_q,
                                                             std::int64_t{p.batch} + 1));
    CUBIST_RETURN_IF_ERROR(check_cumulative("cum_seq_lens_q", sums, p.max_q_len, p.sum_seq_q));
  }
  if (args.cum_seq_lens_kv == 0) return {};
  CUBIST_ASSIGN_OR_RETURN(const auto sums, inspection.read("cum_seq_lens_kv", args.cum_seq_lens_kv,
                                                           std::int64_t{p.batch} + 1));
  return check_cumulative("cum_seq_lens_kv", sums, p.max_kv_len, p.sum_seq_kv);
}

Status check_dense(const Inspection& inspection, const AttentionProblem& p, const CallArgs& args,
                   std::uint64_t workspace_size) {
  const OutputStrides o = output_strides(p, args);
  CUBIST_RETURN_IF_ERROR(
      inspection.check_memory("q", args.q,
                              extent_bytes(p.dtype_q, {{p.sum_seq_q, p.q_stride_tokens},
                                                       {p.num_q_heads, p.q_stride_heads},
                                                       {p.head_dim_qk, 1}})));
  CUBIST_RETURN_IF_ERROR(inspection.check_memory(
      "o", args.o,
      extent_bytes(p.dtype_o,
                   {{p.sum_seq_q, o.tokens}, {p.num_q_heads, o.heads}, {p.head_dim_vo, 1}})));
  if (p.dtype_o == Dtype::kE2m1) {
    AttentionProblem of_call = p;
    of_call.o_sf_start_index = args.o_sf_start_index.value_or(p.o_sf_start_index);
    CUBIST_ASSIGN_OR_RETURN(const Nvfp4ScaleLayout scales, nvfp4_scale_layout(of_call));
    CUBIST_RETURN_IF_ERROR(inspection.check_memory(
        "o_sf", args.o_sf, static_cast<std::uint64_t>(scales.size_bytes())));
  }
  const auto heads = static_cast<std::uint64_t>(p.num_q_heads);
  CUBIST_RETURN_IF_ERROR(inspection.check_memory("sinks", args.sinks, heads * sizeof(float)));
  CUBIST_RETURN_IF_ERROR(inspection.check_memory(
      "lse", args.lse,
      extent_bytes(Dtype::kFp32,
                   {{p.sum_seq_q, p.lse_stride_tokens}, {p.num_q_heads, p.lse_stride_heads}})));
  CUBIST_RETURN_IF_ERROR(
      inspection.check_memory("bmm1_scale_log2", args.bmm1_scale_log2, sizeof(float)));
  CUBIST_RETURN_IF_ERROR(inspection.check_memory("bmm2_scale", args.bmm2_scale, sizeof(float)));
  return inspection.check_memory("workspace", args.workspace,
                                 std::max(workspace_size, args.workspace_size));
}

}  // namespace

Status inspect_call(const driver::Driver& driver, const ContextInfo& context,
                    const AttentionProblem& problem, const CallArgs& args,
                    std::uint64_t workspace_size, cuda::CUstream stream) {
  const driver::DriverTable& table = driver.table();
  if (table.cuPointerGetAttribute == nullptr) {
    return fail(
        StatusCode::kUnsupported,
        "this CUDA driver has no cuPointerGetAttribute, so nothing can be said of addresses");
  }
  cuda::CUstreamCaptureStatus capture = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
  CUBIST_RETURN_IF_ERROR(
      driver.check(table.cuStreamIsCapturing(stream, &capture), "cuStreamIsCapturing"));
  if (capture != cuda::CU_STREAM_CAPTURE_STATUS_NONE) {
    return fail(StatusCode::kCapture,
                "a call is looked at only while its stream is not captured: it is waited for");
  }
  CUBIST_RETURN_IF_ERROR(driver.check(table.cuStreamSynchronize(stream), "cuStreamSynchronize"));
  const Inspection inspection(driver, context);
  CUBIST_RETURN_IF_ERROR(check_dense(inspection, problem, args, workspace_size));
  CUBIST_RETURN_IF_ERROR(check_cumulative_lengths(inspection, problem, args));
  return problem.phase == Phase::kRagged ? check_ragged_kv(inspection, problem, args)
                                         : check_paged_kv(inspection, problem, args);
}

}  // namespace cubist::launcher
