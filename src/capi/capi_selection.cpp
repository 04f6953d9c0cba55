#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"
#include "launcher/nvfp4_output.h"
#include "launcher/output_layout.h"

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

/// Problems of cubist_runtime_select_many; what was selected is destroyed again unless it is kept.
class ManySelections {
 public:
  ManySelections(cubist_selection** out, uint32_t count) : out_(out), count_(count) {}
  ~ManySelections() {
    if (kept_) return;
    for (uint32_t i = 0; i < count_; ++i) {
      if (out_[i] == nullptr) continue;
      static_cast<void>(selections().remove(out_[i]));
      out_[i] = nullptr;
    }
  }
  ManySelections(const ManySelections&) = delete;
  ManySelections& operator=(const ManySelections&) = delete;
  void keep() { kept_ = true; }

 private:
  cubist_selection** out_;
  uint32_t count_;
  bool kept_ = false;
};

Status select_one(const RuntimeObject& runtime, const cubist_attention_problem& problem,
                  const DeviceProfile& device, cubist_selection*& out) {
  CUBIST_ASSIGN_OR_RETURN(const AttentionProblem wanted, from_c(problem));
  CUBIST_ASSIGN_OR_RETURN(auto selected, runtime.runtime->select(wanted, device));
  CUBIST_ASSIGN_OR_RETURN(out,
                          selections().add(std::make_unique<SelectionObject>(std::move(selected))));
  return {};
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
    CUBIST_ASSIGN_OR_RETURN(const DeviceProfile profile, from_c(*device));
    return select_one(*object, *problem, profile, *out_selection);
  });
}

cubist_status cubist_runtime_select_many(cubist_runtime* runtime,
                                         const cubist_attention_problem* problems,
                                         uint32_t num_problems, const cubist_device* device,
                                         cubist_selection** out_selections,
                                         cubist_status* out_statuses) {
  for (uint32_t i = 0; out_selections != nullptr && i < num_problems; ++i) {
    out_selections[i] = nullptr;
  }
  for (uint32_t i = 0; out_statuses != nullptr && i < num_problems; ++i) out_statuses[i] = 0;
  return guard([&]() -> Status {
    if (out_selections == nullptr) {
      return fail(StatusCode::kInvalidArgument, "out_selections is NULL");
    }
    if (problems == nullptr) return fail(StatusCode::kInvalidArgument, "problems is NULL");
    CUBIST_RETURN_IF_ERROR(check_struct(device, "device"));
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const DeviceProfile profile, from_c(*device));
    for (uint32_t i = 0; i < num_problems; ++i) {
      CUBIST_RETURN_IF_ERROR(check_struct(&problems[i], fmt::format("problems[{}]", i)));
    }
    ManySelections made(out_selections, num_problems);
    for (uint32_t i = 0; i < num_problems; ++i) {
      Status status = select_one(*object, problems[i], profile, out_selections[i]);
      if (!status && out_statuses == nullptr) {
        return forward_error(status, fmt::format("problems[{}]", i));
      }
      if (!status) out_statuses[i] = static_cast<cubist_status>(status.error().code());
    }
    made.keep();
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
    to_c(need, *out_workspace);
    return {};
  });
}

cubist_status cubist_runtime_get_workspace_bound(cubist_runtime* runtime,
                                                 const cubist_attention_problem* largest,
                                                 const cubist_device* device,
                                                 cubist_workspace_info* out_workspace) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_workspace, "out_workspace"));
    *out_workspace = CUBIST_WORKSPACE_INFO_INIT;
    CUBIST_RETURN_IF_ERROR(check_struct(largest, "largest"));
    CUBIST_RETURN_IF_ERROR(check_struct(device, "device"));
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const AttentionProblem problem, from_c(*largest));
    CUBIST_ASSIGN_OR_RETURN(const DeviceProfile profile, from_c(*device));
    CUBIST_ASSIGN_OR_RETURN(const runtime::WorkspaceNeed need,
                            object->runtime->workspace_bound(problem, profile));
    to_c(need, *out_workspace);
    return {};
  });
}

cubist_status cubist_selection_get_output(cubist_selection* selection,
                                          cubist_tensor_layout* out_layout) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_layout, "out_layout"));
    *out_layout = CUBIST_TENSOR_LAYOUT_INIT;
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    to_c(launcher::output_layout(object->selected->problem()), *out_layout);
    return {};
  });
}

cubist_status cubist_selection_get_output_scale(cubist_selection* selection,
                                                cubist_output_scale_info* out_scale) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_scale, "out_scale"));
    *out_scale = CUBIST_OUTPUT_SCALE_INFO_INIT;
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    CUBIST_ASSIGN_OR_RETURN(const launcher::Nvfp4ScaleLayout layout,
                            launcher::nvfp4_scale_layout(object->selected->problem()));
    out_scale->alignment = 16;
    out_scale->rows = layout.rows;
    out_scale->columns = layout.columns;
    out_scale->size_bytes = static_cast<uint64_t>(layout.size_bytes());
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
