#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command.h"
#include "fetch_support.h"
#include "filter_options.h"
#include "manifest/diff.h"
#include "manifest/merge.h"
#include "manifest/validate.h"
#include "manifest/write.h"
#include "manifest_pins.h"
#include "manifest_verify.h"
#include "print_json.h"
#include "set_items.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kManifestHelp = R"(Pins, lists, checks, compares, cuts and merges manifests.

Examples:
  cubist manifest add flashinfer-0.6.13
  cubist manifest list
  cubist manifest validate M.json flashinfer-0.6.13
  cubist manifest verify M.json --trusted-key ./publisher.pub
  cubist manifest diff flashinfer-0.6.8 flashinfer-0.6.13
  cubist manifest subset flashinfer-0.6.13 --arch sm_100 --dtype-q bf16 -o small.json
  cubist manifest subset flashinfer-0.6.13 --working-set set.json --manifest-name deployed -o deployed.json
  cubist manifest merge A.json B.json --manifest-name mine -o both.json)";

std::size_t num_kernels(const Manifest& manifest) {
  std::size_t count = 0;
  for (const Pack& pack : manifest.packs) count += pack.kernels.size();
  return count;
}

// validate

ExitCode run_validate(const std::vector<std::string>& names, const CommonOptions& common) {
  Status first;
  Json results = Json::array();
  for (const std::string& name : names) {
    const auto manifest = open_manifest(name);
    if (!manifest) {
      if (first) first = tl::unexpected<Error>(manifest.error());
      results.push_back(
          {{"manifest", name}, {"valid", false}, {"error", error_json(manifest.error())}});
      print_error(manifest.error());
      continue;
    }
    results.push_back({{"manifest", name},
                       {"valid", true},
                       {"name", manifest->name},
                       {"packs", manifest->packs.size()},
                       {"kernels", num_kernels(*manifest)}});
    if (!common.json) {
      std::printf("%s: valid: %zu packs, %zu kernels\n", name.c_str(), manifest->packs.size(),
                  num_kernels(*manifest));
    }
  }
  if (common.json) print_json({{"manifests", std::move(results)}}, first);
  return first ? ExitCode::kOk : exit_code_for(first.error().code());
}

// diff

Json entry_json(const DiffEntry& entry) {
  return {{"pack", entry.pack->name},
          {"name", entry.record->name},
          {"sha256", entry.record->sha256.hex()}};
}

Json pair_json(const DiffPair& pair) {
  return {{"pack", pair.after.pack->name},
          {"name", pair.after.record->name},
          {"sha256_before", pair.before.record->sha256.hex()},
          {"sha256", pair.after.record->sha256.hex()},
          {"traits", trait_differences(pair.before.record->traits, pair.after.record->traits)},
          {"min_driver", min_driver_difference(pair)}};
}

template <class Element, class ToJson>
Json list_json(const std::vector<Element>& list, ToJson to_json) {
  Json out = Json::array();
  for (const Element& element : list) out.push_back(to_json(element));
  return out;
}

Json diff_json(const ManifestDiff& diff) {
  return {{"unchanged", diff.unchanged},
          {"added", list_json(diff.added, entry_json)},
          {"removed", list_json(diff.removed, entry_json)},
          {"other_bytes", list_json(diff.other_bytes, pair_json)},
          {"other_traits", list_json(diff.other_traits, pair_json)},
          {"other_min_driver", list_json(diff.other_min_driver, pair_json)}};
}

std::string short_digest(const KernelRecord& record) { return record.sha256.hex().substr(0, 12); }

void print_pair(char mark, const DiffPair& pair) {
  const KernelRecord& before = *pair.before.record;
  const KernelRecord& after = *pair.after.record;
  std::printf("%c %s", mark, after.name.c_str());
  if (before.sha256 != after.sha256) {
    std::printf("  sha256 %s -> %s", short_digest(before).c_str(), short_digest(after).c_str());
  }
  for (const std::string& difference :
       {trait_differences(before.traits, after.traits), min_driver_difference(pair)}) {
    std::printf("%s%s", difference.empty() ? "" : "  ", difference.c_str());
  }
  std::printf("\n");
}

void print_diff(const ManifestDiff& diff, bool summary) {
  if (!summary) {
    for (const DiffEntry& entry : diff.removed) std::printf("- %s\n", entry.record->name.c_str());
    for (const DiffEntry& entry : diff.added) std::printf("+ %s\n", entry.record->name.c_str());
    for (const DiffPair& pair : diff.other_bytes) print_pair('!', pair);
    for (const DiffPair& pair : diff.other_traits) print_pair('~', pair);
    for (const DiffPair& pair : diff.other_min_driver) print_pair('^', pair);
  }
  std::printf(
      "%zu added (+), %zu removed (-), %zu same name with other bytes (!), %zu other traits (~), "
      "%zu other min_driver alone (^), %zu unchanged\n",
      diff.added.size(), diff.removed.size(), diff.other_bytes.size(), diff.other_traits.size(),
      diff.other_min_driver.size(), diff.unchanged);
}

ExitCode run_diff(const std::string& before_name, const std::string& after_name, bool summary,
                  const CommonOptions& common) {
  const auto before = open_manifest(before_name);
  if (!before) return report_error(common, before.error());
  const auto after = open_manifest(after_name);
  if (!after) return report_error(common, after.error());
  const ManifestDiff diff = diff_manifests(*before, *after);
  if (common.json) {
    print_json(diff_json(diff));
  } else {
    print_diff(diff, summary);
  }
  return ExitCode::kOk;
}

// subset and merge

struct OutputArguments {
  std::string output;
  std::string name;
};

void add_output_options(CLI::App& command, OutputArguments& arguments) {
  command.add_option("-o,--output", arguments.output, "Manifest to write; - is standard output")
      ->required();
  command.add_option("--manifest-name", arguments.name, "Name of the new manifest");
}

ExitCode write_result(const Manifest& manifest, std::size_t dropped,
                      const OutputArguments& arguments, const CommonOptions& common) {
  const std::string text = write_manifest(manifest);
  const bool to_stdout = arguments.output == "-";
  if (to_stdout) {
    print(text);
    return ExitCode::kOk;
  }
  const Status written = write_file_atomically(arguments.output, text);
  if (!written) return report_error(common, written.error());
  const std::size_t kernels = num_kernels(manifest);
  if (common.json) {
    print_json({{"output", arguments.output},
                {"name", manifest.name},
                {"packs", manifest.packs.size()},
                {"kernels", kernels},
                {"dropped", dropped}});
    return ExitCode::kOk;
  }
  std::printf("wrote %s: %zu packs, %zu kernels", arguments.output.c_str(), manifest.packs.size(),
              kernels);
  if (dropped != 0) std::printf(" (%zu that occurred twice left out)", dropped);
  std::printf("\n");
  return ExitCode::kOk;
}

struct SubsetArguments {
  std::string manifest;
  std::string working_set;
  FilterArguments filter;
  OutputArguments output;
};

/// Whatever else it is asked for, a kernel must be in the set.
Status add_working_set(const std::string& path, const Manifest& manifest, KernelFilter& filter) {
  if (path.empty()) return {};
  CUBIST_ASSIGN_OR_RETURN(const auto set, workingset::load_set(path));
  CUBIST_ASSIGN_OR_RETURN(const auto items, find_set_items(set, path, manifest));
  std::vector<Sha256Digest> both;
  for (const FetchItem& item : items) {
    const Sha256Digest& digest = item.record->sha256;
    const auto& asked = filter.digests;
    if (asked.empty() || std::find(asked.begin(), asked.end(), digest) != asked.end()) {
      both.push_back(digest);
    }
  }
  if (both.empty()) {
    return fail(StatusCode::kNotFound, "none of the digests asked for is in {}", path);
  }
  filter.digests = std::move(both);
  return {};
}

Result<Manifest> make_subset(const SubsetArguments& arguments) {
  CUBIST_ASSIGN_OR_RETURN(KernelFilter filter, read_filter(arguments.filter));
  CUBIST_ASSIGN_OR_RETURN(const Manifest manifest, open_manifest(arguments.manifest));
  CUBIST_RETURN_IF_ERROR(add_working_set(arguments.working_set, manifest, filter));
  Manifest subset = subset_of(manifest, filter);
  if (subset.packs.empty()) {
    return fail(StatusCode::kNotFound,
                "no kernel of '{}' passes these filters; nothing was written (see: cubist list "
                "--manifest {})",
                arguments.manifest, arguments.manifest);
  }
  resolve_locations(subset);
  if (!arguments.output.name.empty()) subset.name = arguments.output.name;
  CUBIST_RETURN_IF_ERROR(validate_manifest(subset, "the subset"));
  return subset;
}

ExitCode run_subset(const SubsetArguments& arguments, const CommonOptions& common) {
  const auto subset = make_subset(arguments);
  if (!subset) return report_error(common, subset.error());
  return write_result(*subset, 0, arguments.output, common);
}

ExitCode run_merge(const std::vector<std::string>& names, const OutputArguments& output,
                   const CommonOptions& common) {
  std::vector<Manifest> manifests;
  for (const std::string& name : names) {
    auto manifest = open_manifest(name);
    if (!manifest) return report_error(common, manifest.error());
    manifests.push_back(std::move(*manifest));
  }
  const auto merged =
      merge_manifests(manifests, output.name.empty() ? manifests.front().name : output.name);
  if (!merged) return report_error(common, merged.error());
  return write_result(merged->manifest, merged->dropped, output, common);
}

// The subcommands' arguments live as long as the callbacks that use them.

void add_validate(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand(
      "validate", "Read manifests strictly and say what is wrong with them (exit code 8)");
  const auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("manifests", *names, "Files, or shipped names")->required();
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, names] { context.exit_code = run_validate(*names, context.common); });
}

void add_diff(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand(
      "diff",
      "Say what changed: kernels added, removed, same name with other bytes or traits, or another\n"
      "min_driver of their pack");
  struct Arguments {
    std::string before;
    std::string after;
    bool summary = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("before", arguments->before, "Manifest")->required();
  command->add_option("after", arguments->after, "Manifest")->required();
  command->add_flag("--summary", arguments->summary, "Print numbers alone");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, arguments] {
    context.exit_code =
        run_diff(arguments->before, arguments->after, arguments->summary, context.common);
  });
}

void add_subset(CLI::App& parent, CommandContext context) {
  CLI::App* command =
      parent.add_subcommand("subset", "Write a manifest with the kernels that pass the filters");
  const auto arguments = std::make_shared<SubsetArguments>();
  command->add_option("manifest", arguments->manifest, "Manifest")->required();
  command->add_option("--working-set", arguments->working_set,
                      "Only kernels of a file that 'cubist working-set -o' wrote");
  add_filter_options(*command, arguments->filter);
  add_output_options(*command, arguments->output);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_subset(*arguments, context.common); });
}

void add_merge(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand(
      "merge",
      "Write one manifest with the kernels of several. Of two words on the "
      "driver that\nthe same bytes need (min_driver) the higher counts; kernels "
      "with different ones are in packs\nof their own");
  struct Arguments {
    std::vector<std::string> manifests;
    OutputArguments output;
  };
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("manifests", arguments->manifests, "Manifests")->required();
  add_output_options(*command, arguments->output);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, arguments] {
    context.exit_code = run_merge(arguments->manifests, arguments->output, context.common);
  });
}

}  // namespace

void add_manifest_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("manifest", kManifestHelp);
  command->require_subcommand(1);
  add_manifest_add(*command, context);
  add_manifest_list(*command, context);
  add_validate(*command, context);
  add_manifest_verify(*command, context);
  add_diff(*command, context);
  add_subset(*command, context);
  add_merge(*command, context);
}

}  // namespace cubist::tools
