#include "launcher/trtllm_gen/param_block.h"

#include <cstring>
#include <new>

#include "launcher/encode_tensor_map.h"

namespace cubist::trtllm_gen {
namespace {

template <class Params>
TensorMapSlot* common_slot(Params& params, std::string_view name) {
  if (name == "q") return &params.tma_q;
  if (name == "k") return &params.tma_k;
  if (name == "v") return &params.tma_v;
  if (name == "o") return &params.tma_o;
  if (name == "k_sf") return &params.tma_k_sf;
  if (name == "v_sf") return &params.tma_v_sf;
  return nullptr;
}

}  // namespace

Status ParamBlock::fill(const AttentionProblem& problem, const LaunchPlan& plan,
                        std::int32_t num_sms, const Addresses& addresses) {
  std::memset(storage_.bytes, 0, sizeof(storage_.bytes));  // padding is launched too
  layout_ = plan.param_layout;
  size_ = param_layout_bytes(layout_);
  switch (layout_) {
    case ParamLayout::kTrtllmGenFmha1280:
      scalars_offset_ = kParams1280Scalars;
      CUBIST_RETURN_IF_ERROR(fill_params(problem, plan, num_sms, addresses, storage_.params_1280));
      break;
    case ParamLayout::kTrtllmGenFmha1152:
      scalars_offset_ = kParams1152Scalars;
      CUBIST_RETURN_IF_ERROR(fill_params(problem, plan, num_sms, addresses, storage_.params_1152));
      break;
    default:
      return fail(StatusCode::kUnsupported,
                  "kernel '{}' takes parameters in the layout {}; this version fills "
                  "trtllm-gen-fmha-1280 and trtllm-gen-fmha-1152",
                  plan.record->name, to_string(layout_));
  }
  CUBIST_ASSIGN_OR_RETURN(maps_, describe_tensor_maps(problem, plan, addresses));
  for (std::uint32_t i = 0; i < maps_.count; ++i) {
    CUBIST_RETURN_IF_ERROR(check_tensor_map(maps_.maps[i]));
  }
  return {};
}

TensorMapSlot* ParamBlock::slot(std::string_view name) {
  if (layout_ == ParamLayout::kTrtllmGenFmha1152) return common_slot(storage_.params_1152, name);
  if (name == "k_swa_pool") return &storage_.params_1280.tma_k_sliding_pool;
  return common_slot(storage_.params_1280, name);
}

Status ParamBlock::encode(const driver::Driver& driver) {
  for (std::uint32_t i = 0; i < maps_.count; ++i) {
    TensorMapSlot* const place = slot(maps_.maps[i].slot);
    if (place == nullptr) {
      return fail(StatusCode::kInternal, "tensor '{}' has no place in the layout {}",
                  maps_.maps[i].slot, to_string(layout_));
    }
    CUBIST_RETURN_IF_ERROR(launcher::encode_tensor_map(driver, maps_.maps[i], place->bytes.data()));
  }
  return {};
}

}  // namespace cubist::trtllm_gen
