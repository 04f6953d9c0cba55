#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "codec/plan_json.h"
#include "codec/problem_json.h"
#include "command.h"
#include "driver/device_query.h"
#include "launch_inputs.h"
#include "launch_jsonl.h"
#include "launch_run.h"
#include "manifest_names.h"
#include "print_json.h"
#include "runtime/runtime.h"
#include "select_device.h"
#include "select_flags.h"
#include "select_text.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLaunchHelp =
    R"(Launches the kernel that serves a problem on a GPU of this machine: random inputs,
one launch compared with a float64 reference on the CPU, then launches in a row for time.
Kernels of the family cubist_decode can be launched so (shipped for sm_90a: H100, H200).

The kernel is fetched into the store if it is not there, verified, loaded. With --dry-run
nothing is fetched or launched and no GPU is needed: the plan is printed, for --device or
for the GPU that is present.

With --dry-run --jsonl, problems are read from a file or standard input, one JSON object a
line as for 'cubist select --jsonl', and every line is answered with the plan and what the
launch would pass to the driver: parameter bytes (params_size, params_hex from
params_hex_offset on), tensor maps, and the extra launches (reduction_kernel, lse_kernel).
Kernels of the trtllm-gen family are answered too. Addresses are made up, the same for
each line, unless the line has them beside its fields:
  {"num_q_heads": 64, "addresses": {"q": "0x7f0000000000", "workspace": 4096, ...}}

Exit code 9: no driver or no GPU here, or none the manifest's kernels run on. Exit code 2
with --jsonl: some line was no problem; the others were answered.

Examples:
  cubist launch --num-q-heads 64 --num-kv-heads 8 --head-dim 64 --batch 32 \
      --max-q-len 4 --max-kv-len 8192 --page-size 32 --sinks --window-left 127
  cubist launch --num-q-heads 32 --dtype-kv e4m3 --sinks --lse --repeat 100
  cubist launch --dry-run --device h200 --num-q-heads 96 --max-q-len 8
  cubist launch --dry-run --jsonl -m flashinfer-0.6.13 problems.jsonl > launches.jsonl
  cubist launch --dry-run --jsonl -m flashinfer-0.6.13 < problems.jsonl)";

struct LaunchArguments {
  std::vector<std::string> manifests = {"cubist-decode"};
  ProblemFlags flags;
  std::string store;
  std::string overrides;
  bool offline = false;
  bool strict = false;
  bool dry_run = false;
  bool jsonl = false;
  std::string file;
  int gpu = 0;
  int repeats = 20;
  std::uint64_t seed = 1;
};

Result<std::shared_ptr<runtime::Runtime>> open_runtime(const LaunchArguments& arguments) {
  runtime::RuntimeOptions options;
  for (const std::string& name : arguments.manifests) {
    CUBIST_ASSIGN_OR_RETURN(std::string path, manifest_path(name));
    options.manifests.push_back(std::move(path));
  }
  options.store_dir = arguments.store;
  options.overrides = arguments.overrides;
  options.offline = arguments.offline;
  options.strict = arguments.strict;
  CUBIST_ASSIGN_OR_RETURN(options.trust, trust_settings());
  return runtime::Runtime::open(options);
}

/// "sm_90a, sm_100f": what the manifests' kernels are for.
std::string architectures(const runtime::Runtime& runtime) {
  std::vector<std::string> names;
  for (const Manifest& manifest : runtime.manifests()) {
    for (const Pack& pack : manifest.packs) {
      for (const KernelRecord& record : pack.kernels) {
        const std::string name = to_string(record.traits.arch);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// errors  kDeviceMismatch: the manifests have no kernel for the GPU at all
Status check_gpu_served(const runtime::Runtime& runtime, const DeviceProfile& device, int gpu) {
  for (const selector::PackTable& pack : runtime.kernels().packs()) {
    if (pack.has_kernels_for(device.sm)) return {};
  }
  return fail(StatusCode::kDeviceMismatch,
              "GPU {} ('{}') is sm_{}, but the kernels of the manifest are for {}", gpu,
              device.name, device.sm, architectures(runtime));
}

/// A GPU of this machine. Its driver and context outlive the runtime, so that what the runtime
/// loaded there is unloaded before the context goes.
struct PresentGpu {
  std::shared_ptr<driver::Driver> driver;
  DeviceProfile device;
  std::unique_ptr<GpuSession> session;  ///< null until something is launched
};

Result<PresentGpu> find_gpu(int gpu) {
  PresentGpu found;
  CUBIST_ASSIGN_OR_RETURN(found.driver, driver::Driver::open());
  CUBIST_ASSIGN_OR_RETURN(found.device, driver::query_device(*found.driver, gpu));
  return found;
}

/// The problem of the flags on the GPU that is there; --sm and --num-sms override what it says.
Result<ProblemAndDevice> problem_for(const LaunchArguments& arguments,
                                     const DeviceProfile& device) {
  ProblemAndDevice value;
  value.device = device;
  CUBIST_RETURN_IF_ERROR(set_fields(arguments.flags.given(), value));
  return value;
}

Json check_json(const LaunchCheck& check) {
  Json json = {{"compared", check.compared},
               {"total", check.total},
               {"worst_of_tolerance", check.worst_of_tolerance},
               {"relative_error", check.relative_error},
               {"worst_lse", check.worst_lse}};
  if (!check.failure.empty()) json["failure"] = check.failure;
  return json;
}

/// The plan as `cubist select --json` prints it, then what the launch gave.
void put_json(const runtime::Selected& selected, const ProblemAndDevice& value,
              const LaunchRun* run, const Status& judgement) {
  std::string in;
  append_problem_json(value.problem, value.device, in);
  std::string out;
  append_answer_json(in, value.problem, selected.selection(), out);
  if (run != nullptr) {
    const Json launch = {{"gpu", value.device.name},      {"launched", run->plan->record->name},
                         {"load_ms", run->load_ms},       {"time_us", run->time_us},
                         {"repeats", run->repeats},       {"counters_zero", run->counters_zero},
                         {"repeatable", run->repeatable}, {"check", check_json(run->check)}};
    out.back() = ',';  // the answer's closing bracket
    out += "\"launch\":" + launch.dump(-1, ' ', false, Json::error_handler_t::replace) + "}";
  }
  if (!judgement) {
    out.back() = ',';
    out += "\"error\":" + error_json_text(judgement.error()) + "}";
  }
  std::puts(out.c_str());
}

void print_run(const LaunchRun& run) {
  const LaunchCheck& check = run.check;
  std::printf("loaded    in %.2f ms\n", run.load_ms);
  std::printf(
      "compared  %llu of %llu outputs with float64: worst error %.2f of the tolerance, "
      "relative error %.1e\n",
      static_cast<unsigned long long>(check.compared), static_cast<unsigned long long>(check.total),
      check.worst_of_tolerance, check.relative_error);
  if (run.time_us >= 0.0) {
    std::printf("time      %.2f us a launch (%d in a row)\n", run.time_us, run.repeats);
  }
}

/// What a launch must have done besides running.
Status judge(const LaunchRun& run) {
  if (!run.check.failure.empty()) {
    return fail(StatusCode::kInternal, "kernel '{}' gave a wrong result: {}",
                run.plan->record->name, run.check.failure);
  }
  if (!run.repeatable) {
    return fail(StatusCode::kInternal, "kernel '{}' gave other bits for the same inputs",
                run.plan->record->name);
  }
  if (!run.counters_zero) {
    return fail(StatusCode::kInternal, "kernel '{}' left counters in the workspace that are not 0",
                run.plan->record->name);
  }
  return {};
}

Result<ProblemAndDevice> dry_run_problem(const LaunchArguments& arguments) {
  if (!arguments.flags.names_device()) {
    const auto gpu = find_gpu(arguments.gpu);
    if (gpu) return problem_for(arguments, gpu->device);
  }
  return arguments.flags.problem();
}

Error name_nearest(const Error& refusal, const runtime::Runtime& runtime,
                   const ProblemAndDevice& value, bool strict) {
  selector::SelectOptions options;
  options.strict = strict;
  const auto explanation =
      selector::explain(runtime.kernels(), value.problem, value.device, options);
  return explanation ? with_nearest(refusal, *explanation) : refusal;
}

ExitCode run_dry(const LaunchArguments& arguments, const CommonOptions& common) {
  const auto runtime = open_runtime(arguments);
  if (!runtime) return report_error(common, runtime.error());
  const auto value = dry_run_problem(arguments);
  if (!value) return report_error(common, value.error());
  if (const Status good = check_scales(value->problem); !good) {
    return report_error(common, good.error());
  }
  const auto selected = (*runtime)->select(value->problem, value->device);
  if (!selected) {
    const Error refusal =
        explain_miss((*runtime)->kernels(), value->device, arguments.flags, selected.error());
    return report_error(common, name_nearest(refusal, **runtime, *value, arguments.strict));
  }
  if (common.json) {
    put_json(**selected, *value, nullptr, {});
  } else {
    print_device(value->device, arguments.flags);
    print_selection((*selected)->selection());
  }
  return ExitCode::kOk;
}

/// Only what the float64 reference knows can be launched and judged here.
Status check_reference(const AttentionProblem& problem, const Selection& selection) {
  const LaunchPlan& plan = selection.best();
  if (plan.family == KernelFamily::kCubistDecode) {
    if (dtype_bits(problem.dtype_o) == 16) return {};
    return fail(
        StatusCode::kUnsupported,
        "dtype_o is {}; 'cubist launch' judges bf16 and fp16 outputs. Launch it through the "
        "library, or see what would be launched with --dry-run",
        to_string(problem.dtype_o));
  }
  return fail(StatusCode::kUnsupported,
              "kernel '{}' is of the family {}; 'cubist launch' has inputs and a reference for "
              "cubist_decode kernels alone. Launch it through the library, or see what would be "
              "launched with --dry-run --jsonl",
              plan.record->name, to_string(plan.family));
}

ExitCode launch_selected(const LaunchArguments& arguments, const CommonOptions& common,
                         runtime::Selected& selected, const ProblemAndDevice& value,
                         PresentGpu& gpu) {
  if (const Status checkable = check_reference(value.problem, selected.selection()); !checkable) {
    return report_error(common, checkable.error());
  }
  auto session = GpuSession::open(*gpu.driver, arguments.gpu);
  if (!session) return report_error(common, session.error());
  gpu.session = *std::move(session);
  const auto run = run_launch(selected, *gpu.session, arguments.seed, arguments.repeats);
  if (!run) return report_error(common, run.error());
  const Status judgement = judge(*run);
  if (common.json) {
    put_json(selected, value, &*run, judgement);
  } else {
    print_run(*run);
  }
  return print_outcome(judgement);
}

ExitCode run_gpu(const LaunchArguments& arguments, const CommonOptions& common) {
  auto gpu = find_gpu(arguments.gpu);  // before the runtime: see PresentGpu
  const auto runtime = open_runtime(arguments);
  if (!runtime) return report_error(common, runtime.error());
  if (!gpu) return report_error(common, gpu.error());
  const auto value = problem_for(arguments, gpu->device);
  if (!value) return report_error(common, value.error());
  const Status served = check_gpu_served(**runtime, gpu->device, arguments.gpu);
  if (!served) return report_error(common, served.error());
  const auto selected = (*runtime)->select(value->problem, value->device);
  if (!selected) {
    return report_error(common,
                        name_nearest(selected.error(), **runtime, *value, arguments.strict));
  }
  if (!common.json) {
    std::printf("gpu       %d: %s, sm_%u, %d SMs\n", arguments.gpu, gpu->device.name.c_str(),
                gpu->device.sm, gpu->device.num_sms);
    print_selection((*selected)->selection());
  }
  return launch_selected(arguments, common, **selected, *value, *gpu);
}

Status check_combination(const LaunchArguments& arguments) {
  if (!arguments.jsonl && !arguments.file.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "'{}': a file of problems goes with --dry-run --jsonl; one problem is given by "
                "flags",
                arguments.file);
  }
  if (!arguments.jsonl) return {};
  if (!arguments.overrides.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "--overrides does not go with --jsonl; 'cubist select --jsonl' takes both");
  }
  if (!arguments.dry_run) {
    return fail(StatusCode::kInvalidArgument,
                "--jsonl goes with --dry-run: it shows what would be launched, without a GPU");
  }
  const auto given = arguments.flags.given();
  if (given.empty() && !arguments.flags.names_device()) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} does not go with --jsonl: each line gives its own problem and device (sm, "
              "num_sms, gpcs)",
              given.empty() ? "--device" : flag_of(given.front().field->name));
}

ExitCode run_jsonl_command(const LaunchArguments& arguments, const CommonOptions& common) {
  LaunchJsonl what;
  what.manifests = arguments.manifests;
  what.file = arguments.file.empty() ? "-" : arguments.file;
  what.strict = arguments.strict;
  auto device = arguments.flags.device();
  if (!device) return report_error(common, device.error());
  what.device = *std::move(device);
  const auto counts = run_launch_jsonl(what);
  if (!counts) return report_error(common, counts.error());
  if (!common.quiet) print_counts(*counts);
  return counts->malformed == 0 ? ExitCode::kOk : ExitCode::kUsage;
}

ExitCode run_launch_command(const LaunchArguments& arguments, const CommonOptions& common) {
  if (const Status good = check_combination(arguments); !good) {
    return report_error(common, good.error());
  }
  if (arguments.jsonl) return run_jsonl_command(arguments, common);
  if (arguments.flags.names_device() && !arguments.dry_run) {
    return report_error(common, Error(StatusCode::kInvalidArgument,
                                      "--device names a preset and goes with --dry-run; --gpu "
                                      "chooses among the GPUs of this machine"));
  }
  return arguments.dry_run ? run_dry(arguments, common) : run_gpu(arguments, common);
}

}  // namespace

void add_launch_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("launch", kLaunchHelp);
  const auto arguments = std::make_shared<LaunchArguments>();
  command
      ->add_option("-m,--manifest", arguments->manifests,
                   "Manifest: a file, or a shipped name; may be repeated (default: "
                   "cubist-decode)")
      ->allow_extra_args(false);  // what follows a value may be the file
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_option("--overrides", arguments->overrides,
                      "Rule file (docs/overrides.md), such as 'cubist tune' writes");
  command->add_flag("--offline", arguments->offline, "Ask no source that needs the network");
  command->add_flag("--strict", arguments->strict, "Refuse where the published rules refuse");
  command->add_flag("--dry-run", arguments->dry_run, "Print the plan; fetch and launch nothing");
  command->add_flag("--jsonl", arguments->jsonl,
                    "With --dry-run: answer problems line by line, with parameter bytes");
  command->add_option("file", arguments->file,
                      "With --jsonl: file of problems; '-' or nothing: standard input");
  command->add_option("--gpu", arguments->gpu, "Which GPU of this machine, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--repeat", arguments->repeats, "Launches in a row for time; 0: none")
      ->check(CLI::Range(0, 1000000));
  command->add_option("--seed", arguments->seed, "Of the random inputs");
  arguments->flags.add_to(*command);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_launch_command(*arguments, context.common); });
}

}  // namespace cubist::tools
