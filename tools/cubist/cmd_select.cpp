#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "codec/explain_json.h"
#include "codec/plan_json.h"
#include "codec/problem_json.h"
#include "command.h"
#include "ruled_selection.h"
#include "select_compare.h"
#include "select_device.h"
#include "select_flags.h"
#include "select_input.h"
#include "select_jsonl.h"
#include "select_sweep.h"
#include "select_text.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

constexpr const char* kSelectHelp =
    R"(Chooses the kernel for an attention problem and prints its launch plan.

The problem is given in flags named like its fields, or line by line as JSON. Selection
needs no GPU: name the device, or give --sm and --num-sms.

The shape is given head by head: --model, --tp and --presets go with --compare alone
('cubist working-set' and 'cubist map' take models too).

Examples:
  cubist select --manifest flashinfer-0.6.13 --device b200 --num-q-heads 64 \
      --num-kv-heads 8 --head-dim 64 --dtype-q bf16 --dtype-kv bf16 --dtype-o bf16 \
      --s-qo 4 --batch 32 --max-kv-len 8192 --page-size 32 --sinks
                              GPT-OSS, full attention; --window-left 127: its other layers
  cubist select --manifest M.json ... --explain          why this one, and what came close
  cubist select --manifest M.json ... --overrides rules.json --explain
  cubist select --manifest M.json --jsonl < problems.jsonl > plans.jsonl
  cubist select --manifest M.json ... --sweep --batch 1..256 --max-kv-len 1k..128k --csv
  cubist select --compare flashinfer-0.6.8 flashinfer-0.6.13 --model deepseek-v3 \
      --device b200 --batch 1..256 --max-q-len 1..4       what an upgrade changes

Where a pack's own rules find nothing although some kernel serves, the best such kernel
is taken and marked as a fallback; --strict refuses instead, as the published runtime does.
A sweep in which no problem is served ends as a single refusal does, with exit code 3.
)";

/// The help, and the values of fields that no flag gives.
std::string select_help() {
  const AttentionProblem p;
  return kSelectHelp +
         fmt::format(
             "\nWithout their flags: {}, types {}, {} KV heads, head dimension {}, batch {}, "
             "max_q_len {}, max_kv_len {}, page size {}, causal {}. --num-q-heads has no "
             "default.",
             to_string(p.phase), to_string(p.dtype_q), p.num_kv_heads, p.head_dim_qk, p.batch,
             p.max_q_len, p.max_kv_len, p.page_size, p.causal);
}

struct SelectArguments {
  std::vector<std::string> manifests;
  std::vector<std::string> barred;
  std::string overrides;
  ProblemFlags flags;
  bool strict = false;
  bool cost_model_always = false;
  bool tile_kv64 = false;
  bool explain = false;
  bool jsonl = false;
  bool sweep = false;
  bool csv = false;
  std::vector<std::string> compare;
  ModelFlags model;
  std::string model_flag;  ///< of --model, --tp and --presets, the first that was given
};

selector::SelectOptions options_of(const SelectArguments& arguments) {
  selector::SelectOptions options;
  options.strict = arguments.strict;
  options.rules.cost_model_always = arguments.cost_model_always;
  options.rules.enable_tile_kv64 = arguments.tile_kv64;
  return options;
}

/// Each line says all of its problem, so a flag that says part of one would be ignored.
Status check_jsonl_flags(const SelectArguments& arguments) {
  std::string flag = arguments.explain ? "--explain" : "";
  if (arguments.flags.names_device()) flag = "--device";
  const auto given = arguments.flags.given();
  if (!given.empty()) flag = flag_of(given.front().field->name);
  if (flag.empty()) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} does not go with --jsonl: each line gives its own problem and device (sm, "
              "num_sms, gpcs)",
              flag);
}

Status check_sweep_flags(const SelectArguments& arguments, const CommonOptions& common) {
  if (arguments.explain) {
    return fail(StatusCode::kInvalidArgument,
                "--explain does not go with --sweep: it explains one problem; give that one "
                "without --sweep");
  }
  if (arguments.csv && common.json) {
    return fail(StatusCode::kInvalidArgument, "--csv and --json are two formats; leave one out");
  }
  return {};
}

Status check_combination(const SelectArguments& arguments, const CommonOptions& common) {
  if (arguments.jsonl) return check_jsonl_flags(arguments);
  if (arguments.sweep) return check_sweep_flags(arguments, common);
  if (arguments.compare.empty() || arguments.compare.size() == 2) return {};
  return fail(StatusCode::kInvalidArgument,
              "--compare has {} manifest{}; it needs two: --compare BEFORE AFTER",
              arguments.compare.size(), arguments.compare.size() == 1 ? "" : "s");
}

ExitCode select_jsonl(const SelectArguments& arguments, const CommonOptions& common,
                      const RuledSelection& ruled) {
  const auto device = arguments.flags.device();
  if (!device) return report_error(common, device.error());
  const auto options = options_of(arguments);
  const auto counts = run_jsonl(ruled, *device, options, STDIN_FILENO, STDOUT_FILENO);
  if (!counts) return report_error(common, counts.error());
  if (!common.quiet) print_counts(*counts);
  return counts->malformed == 0 ? ExitCode::kOk : ExitCode::kUsage;
}

ExitCode select_sweep(const SelectArguments& arguments, const CommonOptions& common,
                      const OpenedManifests& opened, const RuledSelection& ruled) {
  const auto result = run_sweep(ruled, arguments.flags, options_of(arguments));
  if (!result) return report_error(common, result.error());
  auto refused = refusal_of_all(*result);
  if (const auto device = arguments.flags.device();
      refused && device && !arguments.flags.changes_device()) {
    refused = explain_miss(opened.table, *device, arguments.flags, *refused);
  }
  if (arguments.csv) {
    print(sweep_csv(*result));
  } else {
    print(common.json ? sweep_json(*result, refused) + "\n" : sweep_text(*result));
  }
  return refused ? print_error(*refused) : ExitCode::kOk;
}

/// {"problem": ..., answer ..., "explain": ...}
/// refusal  where there is no selection
void put_json(const ProblemAndDevice& value, const selector::Explanation& explanation,
              const std::optional<Error>& refusal, bool with_explanation) {
  std::string in;
  append_problem_json(value.problem, value.device, in);
  std::string out;
  if (explanation.selection) {
    append_answer_json(in, value.problem, *explanation.selection, out);
  } else {
    append_error_json(in, *refusal, static_cast<int>(exit_code_for(refusal->code())), out);
  }
  if (with_explanation) {
    out.back() = ',';  // the answer's closing bracket
    out += "\"explain\":";
    append_explanation_json(explanation, out);
    out += '}';
  }
  print(out + "\n");
}

ExitCode select_one(const SelectArguments& arguments, const CommonOptions& common,
                    const OpenedManifests& opened, const RuledSelection& ruled) {
  const auto value = arguments.flags.problem();
  if (!value) return report_error(common, value.error());
  const auto explanation = ruled.explain(value->problem, value->device, options_of(arguments));
  if (!explanation) return report_error(common, explanation.error());
  std::optional<Error> refusal;
  if (!explanation->selection) {
    refusal = explain_miss(opened.table, value->device, arguments.flags, *explanation->refusal);
    if (!arguments.explain) refusal = with_nearest(*refusal, *explanation);
  }
  if (common.json) {
    put_json(*value, *explanation, refusal, arguments.explain);
  } else {
    if (arguments.explain) print_explanation(*explanation);
    if (explanation->selection) {
      print_device(value->device, arguments.flags);
      print_selection(*explanation->selection);
    }
  }
  return refusal ? print_error(*refusal) : ExitCode::kOk;
}

ExitCode select_compare(const SelectArguments& arguments, const CommonOptions& common) {
  CompareArguments compare;
  compare.before = arguments.compare.at(0);
  compare.after = arguments.compare.at(1);
  compare.device = arguments.flags.device_name();
  compare.model = arguments.model;
  compare.strict = arguments.strict;
  for (const ProblemFlags::Given& flag : arguments.flags.given()) {
    compare.texts[std::string(flag.field->name)] = flag.text;
  }
  const auto text = run_compare(compare, common.json);
  if (!text) return report_error(common, text.error());
  print(*text);
  return ExitCode::kOk;
}

ExitCode run_select(const SelectArguments& arguments, const CommonOptions& common) {
  if (arguments.compare.empty() && !arguments.model_flag.empty()) {
    return report_error(
        common, Error(StatusCode::kInvalidArgument,
                      fmt::format("{} goes with --compare; one problem's shape is given by "
                                  "--num-q-heads, --num-kv-heads and --head-dim. For a model see "
                                  "'cubist working-set' and 'cubist map', which take {}",
                                  arguments.model_flag, arguments.model_flag)));
  }
  if (const Status good = check_combination(arguments, common); !good) {
    return report_error(common, good.error());
  }
  if (!arguments.compare.empty()) return select_compare(arguments, common);
  if (arguments.manifests.empty()) {
    return report_error(common, Error(StatusCode::kInvalidArgument,
                                      "--manifest is required: a file, or the name of a shipped "
                                      "manifest"));
  }
  const auto opened = open_manifests(arguments.manifests, arguments.barred);
  if (!opened) return report_error(common, opened.error());
  const auto ruled = RuledSelection::open(opened->table, arguments.overrides);
  if (!ruled) return report_error(common, ruled.error());
  if (arguments.jsonl) return select_jsonl(arguments, common, *ruled);
  if (arguments.sweep) return select_sweep(arguments, common, *opened, *ruled);
  return select_one(arguments, common, *opened, *ruled);
}

}  // namespace

void add_select_command(CommandContext context) {
  auto arguments = std::make_shared<SelectArguments>();
  CLI::App* command = context.app.add_subcommand("select", select_help());
  add_store_option(*command);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  auto* manifest =
      command->add_option("-m,--manifest", arguments->manifests,
                          "Manifest file or name of a shipped one; several: packs in this order");
  command->add_flag("--strict", arguments->strict,
                    "Only what the packs' own rules choose, no fallback");
  command->add_flag("--explain", arguments->explain,
                    "Show the steps, the runner-up, and the nearest kernels of a miss");
  auto* jsonl = command->add_flag("--jsonl", arguments->jsonl,
                                  "Read problems from standard input, one JSON object a line; "
                                  "each gives its own device");
  auto* sweep = command->add_flag(
      "--sweep", arguments->sweep,
      "Flags may hold lists (1,2,4) and ranges (1..256, 1k..128k): show which kernel serves what");
  command->add_flag("--csv", arguments->csv, "With --sweep: comma-separated values")->needs(sweep);
  jsonl->excludes(sweep);
  command->add_option("--bar", arguments->barred,
                      "Never choose this kernel: SHA256 or SHA256=REASON; may be repeated");
  auto* overrides = command->add_option("--overrides", arguments->overrides,
                                        "Rule file (docs/overrides.md): select under these rules; "
                                        "--explain shows those that applied");
  command->add_flag("--cost-model-always", arguments->cost_model_always,
                    "Ask the tile_q cost model for one query token too");
  command->add_flag("--enable-tile-kv64", arguments->tile_kv64,
                    "MLA with SMs left over takes tile_kv 64");
  command
      ->add_option(
          "--compare", arguments->compare,
          "Two manifests, each perhaps with ,device=NAME or ,revision=NAME: which problems "
          "of the ranges given get another kernel")
      ->expected(2)
      ->excludes(manifest)
      ->excludes(overrides)
      ->excludes(jsonl)
      ->excludes(sweep);
  arguments->model.add_to(*command);
  arguments->flags.add_to(*command);
  command->callback([arguments, context, command] {
    for (const char* flag : {"--model", "--tp", "--presets"}) {
      if (arguments->model_flag.empty() && command->count(flag) > 0) arguments->model_flag = flag;
    }
    context.exit_code = run_select(*arguments, context.common);
  });
}

}  // namespace cubist::tools
