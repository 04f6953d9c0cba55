#include "launch_run.h"

#include <algorithm>

#include "launcher/scales.h"

namespace cubist::tools {
namespace {

Result<launcher::CallArgs> upload_inputs(const AttentionProblem& problem, GpuSession& session,
                                         const LaunchInputs& inputs, const LaunchScales& scales) {
  launcher::CallArgs args;
  CUBIST_ASSIGN_OR_RETURN(args.q, session.upload(inputs.q));
  CUBIST_ASSIGN_OR_RETURN(args.k, session.upload(inputs.k));
  args.v = args.k + inputs.v_offset;
  if (!inputs.v.empty()) {
    CUBIST_ASSIGN_OR_RETURN(args.v, session.upload(inputs.v));
  }
  CUBIST_ASSIGN_OR_RETURN(args.o, session.allocate(inputs.o_bytes));
  CUBIST_ASSIGN_OR_RETURN(args.block_table, session.upload(inputs.block_table));
  CUBIST_ASSIGN_OR_RETURN(args.seq_lens_kv, session.upload(inputs.seq_lens_kv));
  if (problem.varlen_q) {
    CUBIST_ASSIGN_OR_RETURN(args.cum_seq_lens_q, session.upload(inputs.cum_seq_lens_q));
  }
  CUBIST_ASSIGN_OR_RETURN(args.sinks, session.upload(inputs.sinks));
  CUBIST_ASSIGN_OR_RETURN(args.lse, session.allocate(inputs.lse_count * sizeof(float)));
  if (problem.bmm1_scale.on_device) {
    const std::vector<float> scalar = {launcher::scale_log2(double{scales.sm_scale})};
    CUBIST_ASSIGN_OR_RETURN(args.bmm1_scale_log2, session.upload(scalar));
  } else {
    args.scales.sm_scale = scales.sm_scale;
  }
  if (problem.bmm2_scale.on_device) {
    CUBIST_ASSIGN_OR_RETURN(args.bmm2_scale, session.upload(std::vector<float>{scales.o_scale}));
  } else {
    args.scales.o_scale = scales.o_scale;
  }
  return args;
}

Result<LaunchOutputs> download_outputs(GpuSession& session, const LaunchInputs& inputs,
                                       const launcher::CallArgs& args) {
  LaunchOutputs outputs;
  CUBIST_ASSIGN_OR_RETURN(outputs.o, session.download<std::uint16_t>(args.o, inputs.o_bytes / 2));
  CUBIST_ASSIGN_OR_RETURN(outputs.lse, session.download<float>(args.lse, inputs.lse_count));
  return outputs;
}

/// Memory that no launch has written yet is 0xff: NaN in every type.
Status poison_outputs(GpuSession& session, const LaunchInputs& inputs,
                      const launcher::CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(session.fill(args.o, 0xff, inputs.o_bytes));
  return session.fill(args.lse, 0xff, inputs.lse_count * sizeof(float));
}

Result<bool> counters_are_zero(GpuSession& session, std::uint64_t workspace,
                               std::uint64_t zero_size) {
  CUBIST_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes,
                          session.download<std::uint8_t>(workspace, zero_size));
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

Result<LaunchRun> run_launch(runtime::Selected& selected, GpuSession& session, std::uint64_t seed,
                             int repeats) {
  const AttentionProblem& problem = selected.problem();
  CUBIST_ASSIGN_OR_RETURN(const runtime::WorkspaceNeed need, selected.workspace());
  CUBIST_ASSIGN_OR_RETURN(const LaunchScales scales, launch_scales(problem));
  LaunchRun run;
  CUBIST_ASSIGN_OR_RETURN(run.plan, selected.prepare());
  run.load_ms = static_cast<double>(selected.runtime().load_counters().nanoseconds) * 1e-6;

  CUBIST_ASSIGN_OR_RETURN(const LaunchInputs inputs, make_launch_inputs(problem, seed));
  CUBIST_ASSIGN_OR_RETURN(launcher::CallArgs args, upload_inputs(problem, session, inputs, scales));
  CUBIST_ASSIGN_OR_RETURN(args.workspace, session.allocate(need.size));
  args.workspace_size = need.size;
  CUBIST_RETURN_IF_ERROR(session.fill(args.workspace, 0xff, need.size));
  CUBIST_RETURN_IF_ERROR(selected.clear_workspace(args.workspace, need.size, nullptr));
  CUBIST_RETURN_IF_ERROR(poison_outputs(session, inputs, args));

  CUBIST_RETURN_IF_ERROR(selected.launch(args, nullptr));
  CUBIST_ASSIGN_OR_RETURN(const LaunchOutputs outputs, download_outputs(session, inputs, args));
  run.check = check_launch(problem, inputs, scales, outputs);

  if (repeats > 0) {
    CUBIST_RETURN_IF_ERROR(poison_outputs(session, inputs, args));
    CUBIST_ASSIGN_OR_RETURN(const double total_us, session.time([&]() -> Status {
      for (int i = 0; i < repeats; ++i) CUBIST_RETURN_IF_ERROR(selected.launch(args, nullptr));
      return {};
    }));
    run.time_us = total_us < 0.0 ? -1.0 : total_us / repeats;
    run.repeats = repeats;
    CUBIST_ASSIGN_OR_RETURN(const LaunchOutputs again, download_outputs(session, inputs, args));
    run.repeatable = again.o == outputs.o;
  }
  CUBIST_ASSIGN_OR_RETURN(run.counters_zero,
                          counters_are_zero(session, args.workspace, need.zero_size));
  return run;
}

}  // namespace cubist::tools
