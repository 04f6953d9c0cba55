#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/structs.h"

using namespace cubist;
using namespace cubist::capi;

namespace {

cuda::CUstream stream_of(void* stream) { return static_cast<cuda::CUstream>(stream); }

/// Selects for cubist_runtime_launch and remembers it. The runtime owns what it remembers, so that
/// owns no part of the runtime.
Result<std::shared_ptr<runtime::Selected>> select_and_keep(RuntimeObject& object,
                                                           const LaunchQuestion& question,
                                                           const launcher::ContextInfo* context) {
  CUBIST_ASSIGN_OR_RETURN(const AttentionProblem problem, from_c(*question.problem));
  DeviceProfile device;
  if (question.device != nullptr) {
    CUBIST_ASSIGN_OR_RETURN(device, from_c(*question.device));
  } else {
    device = context->profile;
  }
  CUBIST_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Selected> selected,
                          object.runtime->select_for_owner(problem, device));
  object.memo.keep(question, selected);
  return selected;
}

}  // namespace

cubist_status cubist_selection_launch(cubist_selection* selection,
                                      const cubist_attention_args* args, void* stream) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(args, "args"));
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    CUBIST_ASSIGN_OR_RETURN(const launcher::CallArgs call, from_c(*args));
    return object->selected->launch(call, stream_of(stream));
  });
}

cubist_status cubist_runtime_launch(cubist_runtime* runtime,
                                    const cubist_attention_problem* problem,
                                    const cubist_device* device, const cubist_attention_args* args,
                                    void* stream) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(problem, "problem"));
    if (device != nullptr) CUBIST_RETURN_IF_ERROR(check_struct(device, "device"));
    CUBIST_RETURN_IF_ERROR(check_struct(args, "args"));
    CUBIST_ASSIGN_OR_RETURN(RuntimeObject * object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const launcher::CallArgs call, from_c(*args));
    LaunchQuestion question = {problem, device, 0};
    const launcher::ContextInfo* context = nullptr;
    if (device == nullptr) {
      CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, object->runtime->launcher());
      CUBIST_ASSIGN_OR_RETURN(context, launcher->current_context());
      question.context_id = context->id;
    }
    std::shared_ptr<runtime::Selected> selected = object->memo.find(question);
    if (selected == nullptr) {
      CUBIST_ASSIGN_OR_RETURN(selected, select_and_keep(*object, question, context));
    }
    return selected->launch(call, stream_of(stream));
  });
}

cubist_status cubist_selection_check(cubist_selection* selection, const cubist_attention_args* args,
                                     void* stream) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(args, "args"));
    CUBIST_ASSIGN_OR_RETURN(const SelectionObject* object, selections().find(selection));
    CUBIST_ASSIGN_OR_RETURN(const launcher::CallArgs call, from_c(*args));
    return object->selected->check(call, stream_of(stream));
  });
}

cubist_status cubist_scales_fuse(cubist_runtime* runtime, const cubist_attention_problem* problem,
                                 const cubist_scales* scales, void* stream) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(problem, "problem"));
    CUBIST_RETURN_IF_ERROR(check_struct(scales, "scales"));
    CUBIST_ASSIGN_OR_RETURN(const RuntimeObject* object, runtimes().find(runtime));
    CUBIST_ASSIGN_OR_RETURN(const AttentionProblem wanted, from_c(*problem));
    const ScaleArguments given = from_c(*scales);
    return object->runtime->fuse_scales(wanted, given.device, given.host, given.bmm1_scale_log2,
                                        given.bmm2_scale, stream_of(stream));
  });
}
