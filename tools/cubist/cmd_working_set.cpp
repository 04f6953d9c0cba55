#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/file.h"
#include "codec/problem_json.h"
#include "command.h"
#include "deployment_flags.h"
#include "ruled_selection.h"
#include "select_input.h"
#include "trust_options.h"
#include "workingset/check.h"
#include "workingset/set_file.h"

namespace cubist::tools {
namespace {

using workingset::CheckResult;
using workingset::Gap;
using workingset::Member;
using workingset::WorkingSet;

struct WorkingSetArguments {
  std::vector<std::string> manifests;
  DeploymentFlags flags;
  std::string output;
  std::string overrides;
  std::uint64_t check = 0;
  std::uint64_t seed = 1;
  bool no_gaps = false;
};

constexpr const char* kWorkingSetHelp =
    R"(Finds the exact set of kernels that a deployment can ever need.

Give the model, the GPU and the limits. Every kernel that selection can answer with in
that range is in the set, whatever the GPU will say about clusters, and no other: the
set is proved, not sampled (docs/design/working-set.md). Each kernel comes with a
problem that selects it. The set file goes to
'cubist fetch --working-set' and 'cubist gc --pin'.

What is not given is narrow: --phase decode, --dtype-q bf16 (--dtype-kv as --dtype-q),
--page-size 64, --max-q-len 1. Prefill, speculative decoding, quantised queries or caches
and other page sizes need their flags; a note says which of these was taken.

Examples:
  cubist working-set -m flashinfer-0.6.13 --model gpt-oss-120b --device b200 \
      --batch 1..256 --max-q-len 1..8 --max-kv-len ..131072 \
      --dtype-q e4m3 --dtype-o bf16 --page-size 32 -o set.json
  cubist working-set -m M.json --model ~/models/mine --device b200 --tp 1,2,4 \
      --phase decode,context --batch 1..64 --max-q-len 1..4096
  cubist working-set -m M.json --num-q-heads 64 --num-kv-heads 8 --head-dim 128 \
      --device b200 --batch 1..256 --max-kv-len ..32768 --check 1000000)";

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

workingset::SetInfo make_info(const WorkingSetArguments& arguments, const Deployment& deployment,
                              const OpenedManifests& opened) {
  workingset::SetInfo info;
  info.model = deployment.model;
  info.device = deployment.query.device.name;
  for (const Manifest& manifest : opened.manifests) {
    info.manifests.push_back(manifest.name);
    for (const Pack& pack : manifest.packs) {
      info.all_kernels += pack.kernels.size();
      for (const KernelRecord& record : pack.kernels) info.all_bytes += record.size_bytes;
    }
  }
  info.overrides = arguments.overrides;
  return info;
}

/// Whether it takes a device on which clusters do not fit to get this kernel.
bool needs_few_clusters(const workingset::Witness& witness) {
  return std::any_of(witness.max_active_clusters.begin(), witness.max_active_clusters.end(),
                     [](std::int32_t answer) { return answer >= 0; });
}

void print_set(const WorkingSet& set, const Deployment& deployment,
               const workingset::SetInfo& info) {
  for (const Member& member : set.members) {
    const AttentionProblem& p = member.witness.problem;
    std::printf("%s\n    %s; batch %d, max_q_len %d, max_kv_len %d%s%s\n",
                member.record->name.c_str(), member.witness.label.c_str(), p.batch, p.max_q_len,
                p.max_kv_len, needs_few_clusters(member.witness) ? " [too few clusters fit]" : "",
                member.fallback == FallbackReason::kNone ? "" : " [fallback]");
  }
  for (const Gap& gap : set.gaps) {
    const AttentionProblem& p = gap.example.problem;
    std::printf(
        "gap: %.4g problems of %s have no kernel, for example batch %d, max_q_len %d, "
        "max_kv_len %d: %s\n",
        gap.num_problems, gap.example.label.c_str(), p.batch, p.max_q_len, p.max_kv_len,
        gap.message.c_str());
  }
  const double part = info.all_bytes == 0 ? 0
                                          : 100.0 * static_cast<double>(set.size_bytes()) /
                                                static_cast<double>(info.all_bytes);
  std::printf("%zu of %llu kernels, %s of %s (%.2f %%), for %.4g problems; proved in %llu boxes\n",
              set.members.size(), static_cast<unsigned long long>(info.all_kernels),
              megabytes(set.size_bytes()).c_str(), megabytes(info.all_bytes).c_str(), part,
              deployment.query.num_problems(), static_cast<unsigned long long>(set.boxes));
}

Status check(const WorkingSetArguments& arguments, const CommonOptions& common,
             const selector::KernelTable& table, const workingset::Query& query,
             const WorkingSet& set) {
  const CheckResult result =
      workingset::check_working_set(table, query, set, arguments.check, arguments.seed);
  if (result.outside) {
    std::string problem;
    DeviceProfile device = query.device;
    append_problem_json(result.outside->problem, device, problem);
    return fail(StatusCode::kInternal,
                "problem {} of the check selects '{}', which is not in the set: {}; please report "
                "this",
                result.problems, result.outside_record->name, problem);
  }
  if (!common.quiet) {
    std::fprintf(stderr,
                 "checked with %llu random problems: %llu were answered, %llu plans looked at, "
                 "none outside the set\n",
                 static_cast<unsigned long long>(result.problems),
                 static_cast<unsigned long long>(result.selected),
                 static_cast<unsigned long long>(result.plans));
  }
  return {};
}

/// What a revocation takes out of a set is not to be missed by whoever ships the set.
Status note_revoked(const OpenedManifests& opened, const CommonOptions& common) {
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  std::size_t count = 0;
  for (const Manifest& manifest : opened.manifests) {
    for (const Pack& pack : manifest.packs) {
      for (const KernelRecord& kernel : pack.kernels) count += revoked->contains(kernel.sha256);
    }
  }
  if (count == 0 || common.quiet) return {};
  std::fprintf(stderr,
               "cubist: note: %zu kernels of these manifests are revoked and in no set; what they "
               "would serve has another kernel here, or is a gap\n",
               count);
  return {};
}

Status run_working_set(const WorkingSetArguments& arguments, const CommonOptions& common) {
  CUBIST_ASSIGN_OR_RETURN(Deployment deployment, arguments.flags.read());
  CUBIST_ASSIGN_OR_RETURN(const OpenedManifests opened, open_manifests(arguments.manifests, {}));
  CUBIST_ASSIGN_OR_RETURN(const auto rules,
                          RuledSelection::open(opened.table, arguments.overrides));
  deployment.query.overrides = rules.overrides();
  CUBIST_ASSIGN_OR_RETURN(const WorkingSet set,
                          workingset::find_working_set(opened.table, deployment.query));
  if (set.members.empty() || (arguments.no_gaps && !set.gaps.empty())) {
    const Gap& gap = set.gaps.front();
    return fail(StatusCode::kUnsupported, "{} of the range have no kernel ({}): {}",
                set.members.empty() ? "all problems" : "some problems", gap.example.label,
                gap.message);
  }
  if (arguments.check > 0) {
    CUBIST_RETURN_IF_ERROR(check(arguments, common, opened.table, deployment.query, set));
  }
  CUBIST_RETURN_IF_ERROR(note_revoked(opened, common));  // before the document, which is the last
  const workingset::SetInfo info = make_info(arguments, deployment, opened);
  const std::string text = workingset::write_set(set, deployment.query, info);
  if (!arguments.output.empty() && arguments.output != "-") {
    CUBIST_RETURN_IF_ERROR(write_file_atomically(arguments.output, text));
  }
  if (common.json || arguments.output == "-") {
    print(text);
  } else {
    print_set(set, deployment, info);
    if (!arguments.output.empty()) std::printf("wrote %s\n", arguments.output.c_str());
  }
  if (const std::string assumed = arguments.flags.assumed(); !assumed.empty() && !common.quiet) {
    std::fprintf(stderr, "cubist: note: not given, so the set is for these alone: %s\n",
                 assumed.c_str());
  }
  return {};
}

}  // namespace

void add_working_set_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand(
      "working-set", "Find the exact set of kernels that a deployment can need");
  command->footer(kWorkingSetHelp);
  auto arguments = std::make_shared<WorkingSetArguments>();
  add_store_option(*command);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command
      ->add_option("-m,--manifest", arguments->manifests,
                   "Manifest file or name of a shipped one; several: packs in this order")
      ->required()
      ->allow_extra_args(false);
  command->add_option("-o,--output", arguments->output, "Set file to write; - is standard output");
  command->add_option("--overrides", arguments->overrides,
                      "Rule file (docs/overrides.md): the set under these rules");
  command->add_option("--check", arguments->check,
                      "Draw so many random problems of the range and fail if one selects a kernel "
                      "outside the set");
  command->add_option("--seed", arguments->seed, "Of the check's random problems");
  command->add_flag("--no-gaps", arguments->no_gaps,
                    "Fail if any problem of the range has no kernel");
  arguments->flags.add_to(*command);
  command->callback([=] {
    if (Status status = run_working_set(*arguments, context.common); !status) {
      context.exit_code = report_error(context.common, status.error());
    }
  });
}

}  // namespace cubist::tools
