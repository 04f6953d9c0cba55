#include "launcher/scales.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "launcher/device_pointer.h"

namespace cubist::launcher {
namespace {

struct MlaShape {
  std::int32_t head_dim_qk;
  std::int32_t head_dim_vo;
  std::int32_t before_absorption;
};

// Latent + rotary columns of the cache, and the query head that was absorbed into them. Sources:
// DeepSeek-V3's published configuration (latent 512, rotary 64, 128 other columns); the smaller
// pair of the published MLA entry point (latent 256, rotary 64, 64 other columns).
constexpr std::array<MlaShape, 2> kMlaShapes = {{{576, 512, 192}, {320, 256, 128}}};

Status check_scale(std::string_view name, float value) {
  if (std::isfinite(value) && value != 0.0F) return {};
  return fail(StatusCode::kInvalidArgument, "{} is {}; a scale must be finite and not 0", name,
              value);
}

Status check_quantised(std::string_view name, float value, Dtype dtype) {
  if (value == 1.0F || dtype_bits(dtype) < 16 || dtype == Dtype::kUnknown) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is {}, but the KV cache holds {}, which is not quantised; leave it at 1", name,
              value, to_string(dtype));
}

Status check_not_both(std::string_view pointer, std::string_view scales, bool any_set) {
  if (!any_set) return {};
  return fail(StatusCode::kInvalidArgument,
              "both {} and host scales ({}) are given; the device scalar replaces them, so leave "
              "them at their defaults",
              pointer, scales);
}

Status check_host_scales(const AttentionProblem& problem, const HostScales& s) {
  CUBIST_RETURN_IF_ERROR(check_scale("q_scale", s.q_scale));
  CUBIST_RETURN_IF_ERROR(check_scale("k_scale", s.k_scale));
  CUBIST_RETURN_IF_ERROR(check_scale("v_scale", s.v_scale));
  CUBIST_RETURN_IF_ERROR(check_scale("o_scale", s.o_scale));
  CUBIST_RETURN_IF_ERROR(check_quantised("k_scale", s.k_scale, problem.dtype_k));
  return check_quantised("v_scale", s.v_scale, problem.dtype_v);
}

Result<float> sm_scale_of(const AttentionProblem& problem, const HostScales& s) {
  if (s.sm_scale == 0.0F) return default_sm_scale(problem);
  CUBIST_RETURN_IF_ERROR(check_scale("sm_scale", s.sm_scale));
  return s.sm_scale;
}

Status check_address(std::string_view name, std::uint64_t address) {
  if (address != 0 && address % alignof(float) == 0) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is {:#x}; the device address of a float is needed, aligned to 4 bytes", name,
              address);
}

Status check_device_scale(std::string_view name, std::uint64_t address, bool on_host) {
  if (address == 0) return {};
  CUBIST_RETURN_IF_ERROR(check_address(name, address));
  return check_not_both(name, name, on_host);
}

Status check_quantised_on_device(std::string_view name, std::uint64_t address, Dtype dtype) {
  if (address == 0 || dtype_bits(dtype) < 16 || dtype == Dtype::kUnknown) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is a device scalar, but the KV cache holds {}, which is not quantised; pass none",
              name, to_string(dtype));
}

Status check_device_scales(const AttentionProblem& problem, const DeviceScales& d,
                           const HostScales& h) {
  CUBIST_RETURN_IF_ERROR(check_device_scale("q_scale", d.q_scale, h.q_scale != 1.0F));
  CUBIST_RETURN_IF_ERROR(check_device_scale("k_scale", d.k_scale, h.k_scale != 1.0F));
  CUBIST_RETURN_IF_ERROR(check_device_scale("v_scale", d.v_scale, h.v_scale != 1.0F));
  CUBIST_RETURN_IF_ERROR(check_device_scale("sm_scale", d.sm_scale, h.sm_scale != 0.0F));
  CUBIST_RETURN_IF_ERROR(check_device_scale("o_scale", d.o_scale, h.o_scale != 1.0F));
  CUBIST_RETURN_IF_ERROR(check_quantised_on_device("k_scale", d.k_scale, problem.dtype_k));
  return check_quantised_on_device("v_scale", d.v_scale, problem.dtype_v);
}

}  // namespace

float scale_log2(double bmm1) { return static_cast<float>(bmm1 * std::numbers::log2e); }

FusedScales fuse_scales(float q_scale, float k_scale, float sm_scale, float v_scale,
                        float o_scale) {
  const float bmm1 = q_scale * k_scale * sm_scale;
  return {scale_log2(bmm1), v_scale * o_scale, bmm1};
}

Result<std::int32_t> head_dim_before_absorption(const AttentionProblem& problem) {
  for (const MlaShape& shape : kMlaShapes) {
    if (problem.head_dim_qk == shape.head_dim_qk && problem.head_dim_vo == shape.head_dim_vo) {
      return shape.before_absorption;
    }
  }
  if (!problem.is_mla && problem.sparse_mla_topk <= 0) return problem.head_dim_qk;
  return fail(StatusCode::kInvalidArgument,
              "sm_scale is left out, and the head size before absorption cannot be told from "
              "head_dim_qk {} and head_dim_vo {}; give sm_scale",
              problem.head_dim_qk, problem.head_dim_vo);
}

Result<float> default_sm_scale(const AttentionProblem& problem) {
  CUBIST_ASSIGN_OR_RETURN(const std::int32_t head_dim, head_dim_before_absorption(problem));
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

Result<FusedScales> fuse_scales(const AttentionProblem& problem, const CallArgs& args) {
  const HostScales& s = args.scales;
  CUBIST_RETURN_IF_ERROR(check_host_scales(problem, s));
  float sm_scale = 1.0F;
  if (args.bmm1_scale_log2 != 0) {
    CUBIST_RETURN_IF_ERROR(
        check_not_both("bmm1_scale_log2", "q_scale, k_scale, sm_scale",
                       s.q_scale != 1.0F || s.k_scale != 1.0F || s.sm_scale != 0.0F));
  } else {
    CUBIST_ASSIGN_OR_RETURN(sm_scale, sm_scale_of(problem, s));
  }
  if (args.bmm2_scale != 0) {
    CUBIST_RETURN_IF_ERROR(
        check_not_both("bmm2_scale", "v_scale, o_scale", s.v_scale != 1.0F || s.o_scale != 1.0F));
  }
  const FusedScales fused = fuse_scales(s.q_scale, s.k_scale, sm_scale, s.v_scale, s.o_scale);
  CUBIST_RETURN_IF_ERROR(check_scale("q_scale * k_scale * sm_scale", fused.bmm1_log2));
  CUBIST_RETURN_IF_ERROR(check_scale("v_scale * o_scale", fused.bmm2));
  return fused;
}

Result<CubistFuseScalesParams> fill_fuse_scales_params(const AttentionProblem& problem,
                                                       const DeviceScales& scales,
                                                       const HostScales& host,
                                                       std::uint64_t bmm1_scale_log2,
                                                       std::uint64_t bmm2_scale) {
  CUBIST_RETURN_IF_ERROR(check_host_scales(problem, host));
  CUBIST_RETURN_IF_ERROR(check_device_scales(problem, scales, host));
  CUBIST_RETURN_IF_ERROR(check_address("bmm1_scale_log2", bmm1_scale_log2));
  CUBIST_RETURN_IF_ERROR(check_address("bmm2_scale", bmm2_scale));
  CubistFuseScalesParams params = {};
  if (scales.sm_scale == 0) {
    CUBIST_ASSIGN_OR_RETURN(params.sm_value, sm_scale_of(problem, host));
  }
  params.q = device_pointer<const float>(scales.q_scale);
  params.k = device_pointer<const float>(scales.k_scale);
  params.sm = device_pointer<const float>(scales.sm_scale);
  params.v = device_pointer<const float>(scales.v_scale);
  params.o = device_pointer<const float>(scales.o_scale);
  params.bmm1_scale_log2 = device_pointer<float>(bmm1_scale_log2);
  params.bmm2_scale = device_pointer<float>(bmm2_scale);
  params.q_value = host.q_scale;
  params.k_value = host.k_scale;
  params.v_value = host.v_scale;
  params.o_value = host.o_scale;
  return params;
}

}  // namespace cubist::launcher
