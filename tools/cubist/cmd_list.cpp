#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "fetch_support.h"
#include "filter_options.h"
#include "kernel_table.h"
#include "manifest_pins.h"
#include "print_json.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

constexpr const char* kListHelp =
    R"(Lists the kernels of a manifest; without --manifest, the manifests that are found.

Filters of one kind add up, those of different kinds must all hold. Several values may be
given to one flag, separated by commas.

Examples:
  cubist list
  cubist list --manifest flashinfer-0.6.13 --dtype-kv e2m1 --phase decode
  cubist list --manifest M.json --arch sm_103 --head-dim 576/512 --json
  cubist list --manifest M.json --name '*H64*PersistentContext' --names)";

struct ListArguments {
  std::string manifest;
  FilterArguments filter;
  bool names = false;
};

void print_kernels_json(const Manifest& manifest, const std::vector<KernelRow>& rows) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelRow& row : rows) kernels.push_back(kernel_json(row));
  const nlohmann::ordered_json document = {
      {"manifest", manifest.name}, {"count", rows.size()}, {"kernels", std::move(kernels)}};
  print_json(document);
}

void print_text(const std::vector<KernelRow>& rows, std::size_t total,
                const CommonOptions& common) {
  if (!rows.empty()) std::fputs(kernel_table(rows).c_str(), stdout);
  if (!common.quiet) std::printf("%zu of %zu kernels\n", rows.size(), total);
}

ExitCode run_list(const ListArguments& arguments, const CommonOptions& common) {
  if (arguments.manifest.empty()) return list_manifests(common);
  const auto filter = read_filter(arguments.filter);
  if (!filter) return report_error(common, filter.error());
  const auto manifest = open_manifest(arguments.manifest);
  if (!manifest) return report_error(common, manifest.error());
  std::vector<KernelRow> rows;
  std::size_t total = 0;
  for (const Pack& pack : manifest->packs) {
    total += pack.kernels.size();
    for (const KernelRecord& record : pack.kernels) {
      if (matches(*filter, pack.family, record)) rows.push_back({&pack, &record});
    }
  }
  if (common.json) {
    print_kernels_json(*manifest, rows);
  } else if (arguments.names) {
    for (const KernelRow& row : rows) std::puts(row.record->name.c_str());
  } else {
    print_text(rows, total, common);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_list_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("list", kListHelp);
  const auto arguments = std::make_shared<ListArguments>();
  command->add_option("-m,--manifest", arguments->manifest, "Manifest: a file, or a shipped name");
  command->add_flag("--names", arguments->names, "Print names alone, one a line");
  add_filter_options(*command, arguments->filter);
  add_store_option(*command);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_list(*arguments, context.common); });
}

}  // namespace cubist::tools
