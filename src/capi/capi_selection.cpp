#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"

using namespace cubist;
using namespace cubist::capi;

namespace {

const char* fallback_text(FallbackReason reason) {
  switch (reason) {
    case FallbackReason::kNone:
      return "";
    case FallbackReason::kRuleFindsNoKernel:
      return "the published rule asks for a kernel that was never built";
    case FallbackReason::kRuleSplitsHeadGroups:
      return "the published rule would put heads of two KV groups into one CTA";
    case FallbackReason::kRuleRefuses:
      return "the published rule refuses a problem that a kernel serves";
  }
  return "unknown";
}

void fill_plan(const LaunchPlan& plan, cubist_plan_info& out) {
  const KernelRecord& record = *plan.record;
  out.family = static_cast<int32_t>(plan.family);
  out.kernel = record.name.c_str();
  out.revision = to_string(plan.revision).data();  // a literal
  out.fallback = fallback_text(plan.fallback);
  out.size_bytes = record.size_bytes;
  std::copy_n(plan.grid.begin(), 3, out.grid);
  std::copy_n(plan.block.begin(), 3, out.block);
  std::copy_n(plan.cluster.begin(), 3, out.cluster);
  out.smem = plan.smem;
  out.cluster_sched_policy = plan.cluster_sched_policy;
  out.pdl = plan.pdl ? 1 : 0;
  out.tile_q = record.traits.tile_q;
  out.tile_kv = record.traits.tile_kv;
  out.multi_ctas_kv_mode = static_cast<int32_t>(record.traits.multi_ctas_kv_mode);
  out.num_ctas_q = plan.num_ctas_q;
  out.num_ctas_kv = plan.num_ctas_kv;
  out.num_tokens_per_cta_q = plan.num_tokens_per_cta_q;
  out.num_heads_per_cta = plan.num_heads_per_cta;
  out.min_active_clusters = plan.min_active_clusters;
  out.needs_reduction = plan.reduction.needed ? 1 : 0;
  out.needs_lse = plan.lse.needed ? 1 : 0;
}

}  // namespace

static_assert(CUBIST_FAMILY_TRTLLM_GEN_FMHA == static_cast<int>(KernelFamily::kTrtllmGenFmha));
static_assert(CUBIST_FAMILY_CUBIST_DECODE == static_cast<int>(KernelFamily::kCubistDecode));

cubist_status cubist_runtime_select(cubist_runtime* runtime,
                                    const cubist_attention_problem* problem,
                                    const cubist_device* device, cubist_selection** out_selection) {
  if (out_selection != nullptr) *out_selection = nullptr;
  return guard([&]() -> Status {
    if (out_selection == nullptr) {
      return fail(StatusCode::kInvalidArgument, "out_selection is NULL");
    }
    CUBIST_RETURN_IF_ERROR(check_struct(problem, "problem"));
    CUBIST_RETURN_IF_ERROR(check_struct(device, "device"));
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const AttentionProblem wanted, from_c(*problem));
    CUBIST_ASSIGN_OR_RETURN(const DeviceProfile profile, from_c(*device));
    CUBIST_ASSIGN_OR_RETURN(auto selected, object->runtime->select(wanted, profile));
    CUBIST_ASSIGN_OR_RETURN(
        *out_selection, selections().add(std::make_unique<SelectionObject>(std::move(selected))));
    return {};
  });
}

cubist_status cubist_selection_destroy(cubist_selection* selection) {
  return guard([&]() -> Status {
    if (selection == nullptr) return {};
    auto removed = selections().remove(selection);
    return removed ? Status{} : forward_error(removed);
  });
}

cubist_status cubist_selection_get_num_plans(cubist_selection* selection, uint32_t* out_num_plans) {
  if (out_num_plans != nullptr) *out_num_plans = 0;
  return guard([&]() -> Status {
    if (out_num_plans == nullptr) {
      return fail(StatusCode::kInvalidArgument, "out_num_plans is NULL");
    }
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    *out_num_plans = object->selected->selection().num_plans;
    return {};
  });
}

cubist_status cubist_selection_get_plan(cubist_selection* selection, uint32_t index,
                                        cubist_plan_info* out_plan) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_plan, "out_plan"));
    *out_plan = CUBIST_PLAN_INFO_INIT;
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    const Selection& plans = object->selected->selection();
    if (index >= plans.num_plans) {
      return fail(StatusCode::kInvalidArgument, "index is {}; the selection has {} plan(s)", index,
                  plans.num_plans);
    }
    fill_plan(plans.plans[index], *out_plan);
    out_plan->sha256 = object->plan_strings[index].sha256.c_str();
    out_plan->arch = object->plan_strings[index].arch.c_str();
    return {};
  });
}

cubist_status cubist_selection_explain(cubist_selection* selection, const char** out_text) {
  if (out_text != nullptr) *out_text = nullptr;
  return guard([&]() -> Status {
    if (out_text == nullptr) return fail(StatusCode::kInvalidArgument, "out_text is NULL");
    CUBIST_ASSIGN_OR_RETURN(SelectionObject * object, selections().find(selection));
    const std::lock_guard lock(object->explain_mutex);
    if (object->explanation.empty()) {
      CUBIST_ASSIGN_OR_RETURN(object->explanation, object->selected->explain());
    }
    *out_text = object->explanation.c_str();
    return {};
  });
}

cubist_status cubist_selection_fetch(cubist_selection* selection) {
  return guard([&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    return object->selected->fetch();
  });
}

cubist_status cubist_selection_get_workspace(cubist_selection* selection,
                                             cubist_workspace_info* out_workspace) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_workspace, "out_workspace"));
    *out_workspace = CUBIST_WORKSPACE_INFO_INIT;
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    CUBIST_ASSIGN_OR_RETURN(const runtime::WorkspaceNeed need, object->selected->workspace());
    out_workspace->alignment = need.alignment;
    out_workspace->size_bytes = need.size;
    out_workspace->zero_bytes = need.zero_size;
    return {};
  });
}

cubist_status cubist_selection_clear_workspace(cubist_selection* selection, void* workspace,
                                               uint64_t workspace_size, void* stream) {
  return guard([&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    return object->selected->clear_workspace(reinterpret_cast<std::uint64_t>(workspace),
                                             workspace_size, static_cast<cuda::CUstream>(stream));
  });
}

cubist_status cubist_selection_prepare(cubist_selection* selection) {
  return guard([&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    auto prepared = object->selected->prepare();
    return prepared ? Status{} : forward_error(prepared);
  });
}

cubist_status cubist_selection_launch(cubist_selection* selection, const cubist_decode_args* args,
                                      void* stream) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(args, "args"));
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    return object->selected->launch(from_c(*args), static_cast<cuda::CUstream>(stream));
  });
}
