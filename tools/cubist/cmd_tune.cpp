#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gpu_session.h"
#include "interrupt.h"
#include "manifest_names.h"
#include "output_file.h"
#include "overrides/decode_model.h"
#include "print_json.h"
#include "runtime/runtime.h"
#include "trust_options.h"
#include "tune_measure.h"
#include "tuning/fit.h"
#include "tuning/judge.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;
using selector::DecodeModel;
using tuning::Judgement;
using tuning::Measured;

constexpr const char* kTuneHelp =
    R"(Measures the decode kernels on a GPU of this machine and fits the model of time by
which they are chosen to what was seen. The fitted model is written as a rule file, which
selection reads: 'cubist select --overrides FILE', 'cubist launch --overrides FILE', or the
field 'overrides' of cubist_runtime_options. Nothing else changes: the shipped model holds
wherever the file is not named.

Every problem of a grid is launched in every way that the rules weigh (kernel, CTAs that
share a sequence's keys); nothing else should use the GPU meanwhile. The quick grid takes
seconds, the full one a minute or two. Printed is how much slower the choice of the shipped
model and of the fitted one is than the best way that was measured; the better is written.

Exit code 9: no driver or no GPU here, or none the manifest's kernels run on.

Examples:
  cubist tune -o tuned.json
  cubist tune --full --gpu 1 -o tuned.json --json > tuned-measured.json
  cubist select --manifest cubist-decode --device h200 --num-q-heads 64 --overrides tuned.json --explain
  cubist launch --num-q-heads 64 --overrides tuned.json)";

struct TuneArguments {
  std::string manifest = "cubist-decode";
  std::string output;
  std::string store;
  bool offline = false;
  bool full = false;
  int gpu = 0;
  std::int64_t memory_mib = 4096;
};

Result<std::shared_ptr<runtime::Runtime>> open_runtime(const TuneArguments& arguments) {
  runtime::RuntimeOptions options;
  CUBIST_ASSIGN_OR_RETURN(std::string path, manifest_path(arguments.manifest));
  options.manifests.push_back(std::move(path));
  options.store_dir = arguments.store;
  options.offline = arguments.offline;
  CUBIST_ASSIGN_OR_RETURN(options.trust, trust_settings());
  return runtime::Runtime::open(options);
}

/// On a terminal alone.
void show_progress(std::size_t done, std::size_t total) {
  std::fprintf(stderr, "\rtune: %zu of %zu problems%s", done, total, done == total ? "\n" : "");
  std::fflush(stderr);
}

struct Tuned {
  DeviceProfile device;
  std::vector<Measured> rows;
  Judgement shipped;
  Judgement fitted;
  DecodeModel model;  ///< the better one of the two
  bool keeps_shipped = false;
};

Json judgement_json(const Judgement& judged) {
  return {{"problems", judged.problems}, {"mean", judged.mean},
          {"median", judged.median},     {"nine_in_ten", judged.nine_in_ten},
          {"worst", judged.worst},       {"within_5_percent", judged.within_5_percent}};
}

Json row_json(const Measured& row) {
  const selector::Request& request = row.request;
  return {{"problem", row.problem},
          {"num_q_heads", request.num_q_heads},
          {"num_kv_heads", request.num_kv_heads},
          {"head_dim_qk", row.record->traits.head_dim_qk},
          {"dtype_kv", to_string(row.record->traits.dtype_k)},
          {"batch", request.batch},
          {"max_q_len", request.max_q_len},
          {"max_kv_len", request.max_kv_len},
          {"kernel", row.record->name},
          {"num_ctas_kv", row.num_ctas_kv},
          {"us", row.us}};
}

Json tuned_json(const TuneArguments& arguments, const Tuned& tuned) {
  Json rows = Json::array();
  for (const Measured& row : tuned.rows) rows.push_back(row_json(row));
  return {{"gpu", tuned.device.name},
          {"sm", tuned.device.sm},
          {"num_sms", tuned.device.num_sms},
          {"grid", arguments.full ? "full" : "quick"},
          {"file", arguments.output},
          {"model", tuned.keeps_shipped ? "shipped" : "tuned"},
          {"choice_over_best",
           {{"shipped", judgement_json(tuned.shipped)}, {"tuned", judgement_json(tuned.fitted)}}},
          {"measured", std::move(rows)}};
}

void print_judgement(const char* name, const Judgement& judged) {
  std::printf(
      "%s  choice over best: median %.3f, nine in ten %.3f, worst %.3f; within 5 %%: %.0f %%\n",
      name, judged.median, judged.nine_in_ten, judged.worst, 100 * judged.within_5_percent);
}

void print_tuned(const TuneArguments& arguments, const Tuned& tuned) {
  std::printf("gpu      %s, sm_%u, %d SMs\n", tuned.device.name.c_str(), tuned.device.sm,
              tuned.device.num_sms);
  std::printf("measured %zu problems in %zu ways\n", tuned.fitted.problems, tuned.rows.size());
  print_judgement("shipped", tuned.shipped);
  print_judgement("tuned  ", tuned.fitted);
  if (tuned.keeps_shipped) std::printf("the shipped model chooses as well here, and was kept\n");
  std::printf("wrote    %s; use it with --overrides\n", arguments.output.c_str());
}

Status write_model(const TuneArguments& arguments, const Tuned& tuned) {
  const std::string made_by =
      fmt::format("cubist tune {}, {} problems of the {} grid", CUBIST_VERSION_STRING,
                  tuned.fitted.problems, arguments.full ? "full" : "quick");
  const std::string text = overrides::write_decode_model(tuned.model, tuned.device.name, made_by);
  CUBIST_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(arguments.output));
  CUBIST_RETURN_IF_ERROR(
      file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  return file.finish();
}

/// `common.json` is false afterwards where the document is out already.
Status run_tune(const TuneArguments& arguments, CommonOptions& common) {
  OpenGpu gpu;  // before the runtime: see OpenGpu
  CUBIST_ASSIGN_OR_RETURN(const auto runtime, open_runtime(arguments));
  CUBIST_ASSIGN_OR_RETURN(gpu, open_gpu(arguments.gpu));
  const InterruptGuard interrupts;
  TuneMeasure::Options options;
  options.grid = arguments.full ? tuning::Grid::kFull : tuning::Grid::kQuick;
  options.memory_bytes = arguments.memory_mib << 20;
  options.cancel = interrupts.flag();
  if (!common.quiet && isatty(STDERR_FILENO) != 0) options.progress = show_progress;
  TuneMeasure measure(*gpu.driver, *gpu.session, runtime, gpu.device);
  Tuned tuned;
  tuned.device = gpu.device;
  CUBIST_ASSIGN_OR_RETURN(tuned.rows, measure.run(options));
  const DecodeModel& shipped = selector::shipped_decode_model();
  tuned.model = tuning::fit_decode_model(shipped, tuned.rows);
  tuned.shipped = tuning::judge(shipped, tuned.rows);
  tuned.fitted = tuning::judge(tuned.model, tuned.rows);
  tuned.keeps_shipped = tuned.fitted.mean >= tuned.shipped.mean;
  if (tuned.keeps_shipped) tuned.model = shipped;
  CUBIST_RETURN_IF_ERROR(write_model(arguments, tuned));
  if (common.json) {
    print_json(tuned_json(arguments, tuned));
    common.json = false;
  } else if (!common.quiet) {
    print_tuned(arguments, tuned);
  }
  return {};
}

ExitCode run_tune_command(const TuneArguments& arguments, CommonOptions common) {
  const Status status = run_tune(arguments, common);
  return status ? ExitCode::kOk : report_error(common, status.error());
}

}  // namespace

void add_tune_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("tune", kTuneHelp);
  const auto arguments = std::make_shared<TuneArguments>();
  command
      ->add_option("-m,--manifest", arguments->manifest,
                   "Manifest of decode kernels: a file, or a shipped name")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "Rule file to write")->required();
  command->add_flag("--full", arguments->full, "The grid that the shipped model was fitted to");
  command->add_option("--gpu", arguments->gpu, "Which GPU of this machine, from 0")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--memory-mib", arguments->memory_mib,
                   "Device memory for K and V, in MiB; problems that need more are left out")
      ->check(CLI::Range(std::int64_t{16}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_flag("--offline", arguments->offline, "Ask no source that needs the network");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_tune_command(*arguments, context.common); });
}

}  // namespace cubist::tools
