#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gpu_session.h"
#include "manifest_names.h"
#include "print_json.h"
#include "runtime/runtime.h"
#include "trust_options.h"
#include "workingset/set_file.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;
using launcher::PreparedKernel;
using launcher::PrepareReport;

constexpr const char* kPrepareHelp =
    R"(Loads kernels on a GPU of this machine, as a runtime does before it serves.
What the store lacks is fetched and verified first; then the kernels are loaded on several
threads, and each one's milliseconds are printed. It shows what a start will cost and that
every kernel of a deployment is there, whole and for this GPU; what it loaded goes with it.

A runtime does the same in its own process with cubist_runtime_prepare.

Exit code 9: no driver or no GPU here, or a kernel that the GPU cannot run.

Examples:
  cubist prepare --manifest cubist-decode
  cubist prepare --manifest flashinfer-0.6.13 --working-set set.json --json
  cubist prepare --manifest M.json --kernel NAME --kernel OTHER --threads 4)";

struct PrepareArguments {
  std::vector<std::string> manifests;
  std::string working_set;
  std::vector<std::string> kernels;
  std::string store;
  bool offline = false;
  int gpu = 0;
  unsigned threads = 0;
};

/// The manifests that are named, or else those that the set is from.
Result<std::shared_ptr<runtime::Runtime>> open_runtime(const PrepareArguments& arguments,
                                                       const workingset::SetFile& set) {
  runtime::RuntimeOptions options;
  for (const std::string& name :
       arguments.manifests.empty() ? set.manifests : arguments.manifests) {
    CUBIST_ASSIGN_OR_RETURN(std::string path, manifest_path(name));
    options.manifests.push_back(std::move(path));
  }
  if (options.manifests.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "--manifest is required: a file, or the name of a shipped manifest");
  }
  options.store_dir = arguments.store;
  options.offline = arguments.offline;
  CUBIST_ASSIGN_OR_RETURN(options.trust, trust_settings());
  return runtime::Runtime::open(options);
}

/// Empty: all that the GPU can run.
Result<std::vector<const KernelRecord*>> wanted_kernels(const PrepareArguments& arguments,
                                                        const workingset::SetFile& set,
                                                        const runtime::Runtime& runtime) {
  std::vector<const KernelRecord*> records;
  for (const std::string& kernel : arguments.kernels) {
    CUBIST_ASSIGN_OR_RETURN(const KernelRecord* record, runtime.find_kernel(kernel));
    records.push_back(record);
  }
  for (const workingset::SetEntry& entry : set.kernels) {
    auto record = runtime.find_kernel(entry.sha256.hex());
    if (!record) {
      return forward_error(record,
                           fmt::format("{}: kernel '{}'", arguments.working_set, entry.name));
    }
    records.push_back(*record);
  }
  return records;
}

const char* word_of(const PreparedKernel& kernel) {
  if (kernel.error) return "failed";
  return kernel.was_loaded ? "present" : "loaded";
}

Json report_json(const PrepareReport& report, const DeviceProfile& device) {
  Json kernels = Json::array();
  for (const PreparedKernel& kernel : report.kernels) {
    Json entry = {{"name", kernel.record->name},
                  {"sha256", kernel.record->sha256.hex()},
                  {"size", kernel.record->size_bytes},
                  {"state", word_of(kernel)},
                  {"milliseconds", kernel.milliseconds}};
    if (kernel.error) entry["error"] = error_json(*kernel.error);
    kernels.push_back(std::move(entry));
  }
  return {{"gpu", device.name},
          {"loaded", report.num_loaded()},
          {"present", report.num_present()},
          {"failed", report.num_failed()},
          {"threads", report.num_threads},
          {"milliseconds", report.milliseconds},
          {"fetch_milliseconds", report.bring_milliseconds},
          {"kernels", std::move(kernels)}};
}

void print_report(const PrepareReport& report) {
  for (const PreparedKernel& kernel : report.kernels) {
    std::printf("%s: %s, %.2f ms\n", kernel.record->name.c_str(), word_of(kernel),
                kernel.milliseconds);
  }
  std::printf("%zu loaded, %zu failed; %.2f ms in all, %.2f of them for fetching; %u threads\n",
              report.num_loaded(), report.num_failed(), report.milliseconds,
              report.bring_milliseconds, report.num_threads);
}

/// `common.json` is false afterwards where the document is out already.
Status run_prepare(const PrepareArguments& arguments, CommonOptions& common) {
  workingset::SetFile set;
  if (!arguments.working_set.empty()) {
    CUBIST_ASSIGN_OR_RETURN(set, workingset::load_set(arguments.working_set));
  }
  OpenGpu gpu;  // before the runtime: see OpenGpu
  CUBIST_ASSIGN_OR_RETURN(const auto runtime, open_runtime(arguments, set));
  CUBIST_ASSIGN_OR_RETURN(const auto records, wanted_kernels(arguments, set, *runtime));
  CUBIST_ASSIGN_OR_RETURN(gpu, open_gpu(arguments.gpu));
  CUBIST_ASSIGN_OR_RETURN(const PrepareReport report, runtime->prepare(records, arguments.threads));
  if (common.json) {
    print_json(report_json(report, gpu.device), report.status());
    common.json = false;
  } else if (!common.quiet) {
    print_report(report);
  }
  return report.status();
}

ExitCode run_prepare_command(const PrepareArguments& arguments, CommonOptions common) {
  const Status status = run_prepare(arguments, common);
  return status ? ExitCode::kOk : report_error(common, status.error());
}

}  // namespace

void add_prepare_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("prepare", kPrepareHelp);
  const auto arguments = std::make_shared<PrepareArguments>();
  command->add_option("-m,--manifest", arguments->manifests,
                      "Manifest: a file, or a shipped name; may be repeated (default: those of the "
                      "working set)");
  command->add_option("--working-set", arguments->working_set,
                      "The kernels of a file that 'cubist working-set -o' wrote");
  command->add_option("--kernel", arguments->kernels,
                      "One kernel, by name or sha256; may be repeated (default: all that the GPU "
                      "can run)");
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_flag("--offline", arguments->offline, "Ask no source that needs the network");
  command->add_option("--gpu", arguments->gpu, "Which GPU of this machine, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--threads", arguments->threads, "Threads that load (default: as suits)")
      ->check(CLI::Range(1, 256));
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, arguments] {
    context.exit_code = run_prepare_command(*arguments, context.common);
  });
}

}  // namespace cubist::tools
