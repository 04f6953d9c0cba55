#pragma once

#include <string_view>

#include "base/result.h"
#include "cubist/cubist.h"
#include "launcher/call_args.h"
#include "launcher/scales.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "model/launch_plan.h"
#include "runtime/runtime.h"

namespace cubist::capi {

/// Whether a struct that comes from or goes to the caller is there and has a size that is known.
/// errors  kInvalidArgument: NULL, or another size (the message has both)
template <class Struct>
Status check_struct(const Struct* value, std::string_view name) {
  if (value == nullptr) return fail(StatusCode::kInvalidArgument, "{} is NULL", name);
  if (value->struct_size == sizeof(Struct)) return {};
  return fail(StatusCode::kInvalidArgument,
              "{}.struct_size is {}, this library knows {}; fill the struct with its CUBIST_*_INIT "
              "from the header of this version ({})",
              name, value->struct_size, sizeof(Struct), cubist_version_string());
}

/// errors  kInvalidArgument: names the field, its value and the rule
Result<AttentionProblem> from_c(const cubist_attention_problem& problem);
Result<DeviceProfile> from_c(const cubist_device& device);
Result<runtime::RuntimeOptions> from_c(const cubist_runtime_options& options);
Result<launcher::CallArgs> from_c(const cubist_attention_args& args);

struct ScaleArguments {
  launcher::DeviceScales device;
  launcher::HostScales host;
  std::uint64_t bmm1_scale_log2 = 0;
  std::uint64_t bmm2_scale = 0;
};
ScaleArguments from_c(const cubist_scales& scales);

/// struct_size stays as the caller has it.
void to_c(const DeviceProfile& device, cubist_device& out);
void to_c(const runtime::WorkspaceNeed& need, cubist_workspace_info& out);
void to_c(const launcher::TensorLayout& layout, cubist_tensor_layout& out);

}  // namespace cubist::capi
