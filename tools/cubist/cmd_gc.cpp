#include <algorithm>
#include <charconv>
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
#include "interrupt.h"
#include "pin_digests.h"
#include "print_json.h"
#include "registry/store_gc.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

struct GcArguments {
  std::string max_size;
  std::vector<std::string> pins;
  std::string store;
  bool revoked = false;
  bool dry_run = false;
};

constexpr const char* kGcHelp =
    R"(Makes the store smaller: removes the entries and bundles that were fetched longest ago
until the rest fits into --max-size, and what killed writers left behind. What a later
install or pull relied on counts as fetched by that one.

Never removed: entries and bundles that a running program holds, and those pinned with --pin
FILE: every SHA-256 in that file (a manifest, a working set, a list of digests). A bundle
goes as a whole, or stays if one of its kernels is pinned. Read-only layers are never
touched.

--revoked removes the entries that the revocation lists name (docs/signing.md), pinned or not,
with or without --max-size. A bundle is not changed: one that holds a revoked kernel, which
nothing selects or loads, is named; install one without it with
--unpack, then remove the old one ('cubist bundle remove').

Examples:
  cubist gc --max-size 2GiB
  cubist gc --max-size 500MB --pin working-set.json --dry-run
  cubist gc --revoked --revocations revoked.json --trusted-key ./publisher.pub)";

/// "500MB", "2GiB", "0"
Result<std::uint64_t> parse_size(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::pair<const char*, std::uint64_t> kUnits[] = {{"", 1},
                                                              {"B", 1},
                                                              {"kB", 1000},
                                                              {"KiB", 1ULL << 10},
                                                              {"MB", 1000000},
                                                              {"MiB", 1ULL << 20},
                                                              {"GB", 1000000000},
                                                              {"GiB", 1ULL << 30}};
  for (const auto& [name, factor] : kUnits) {
    if (error != std::errc() || unit != name || number > UINT64_MAX / factor) continue;
    return number * factor;
  }
  return fail(StatusCode::kInvalidArgument,
              "--max-size {}: expected a whole number and B, kB, KiB, MB, MiB, GB or GiB", text);
}

Result<std::unordered_set<Sha256Digest>> digests_of_lists() {
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  if (revoked->empty()) {
    return fail(StatusCode::kInvalidArgument,
                "--revoked: no revocation list is configured (--revocations, CUBIST_REVOCATIONS), "
                "or none of them names a kernel");
  }
  std::unordered_set<Sha256Digest> digests;
  for (const auto& [digest, why] : revoked->all()) digests.insert(digest);
  return digests;
}

Result<GcReport> collect(const GcArguments& arguments, const Store& store,
                         const InterruptGuard& interrupt) {
  GcOptions options;
  if (arguments.max_size.empty() && !arguments.revoked) {
    return fail(StatusCode::kInvalidArgument, "what shall go? Give --max-size, --revoked, or both");
  }
  options.max_bytes = UINT64_MAX;
  if (!arguments.max_size.empty()) {
    CUBIST_ASSIGN_OR_RETURN(options.max_bytes, parse_size(arguments.max_size));
  }
  if (arguments.revoked) {
    CUBIST_ASSIGN_OR_RETURN(options.unwanted, digests_of_lists());
  }
  CUBIST_ASSIGN_OR_RETURN(options.pinned, read_pins(arguments.pins));
  options.dry_run = arguments.dry_run;
  options.cancel = interrupt.flag();
  return collect_garbage(store, options);
}

ExitCode run_gc(const GcArguments& arguments, const CommonOptions& common) {
  const auto store = Store::open(arguments.store);
  if (!store) return report_error(common, store.error());
  const InterruptGuard interrupt;
  const auto report = collect(arguments, *store, interrupt);
  if (!report) return report_error(common, report.error());
  if (common.json) {
    const Json document = {{"store", store->root()},
                           {"dry_run", arguments.dry_run},
                           {"entries_before", report->entries_before},
                           {"bytes_before", report->bytes_before},
                           {"bytes_after", report->bytes_after},
                           {"kept_in_use", report->kept_in_use},
                           {"kept_pinned", report->kept_pinned},
                           {"unfinished_removed", report->unfinished_removed},
                           {"removed", report->removed},
                           {"bundles_with_revoked", report->with_unwanted}};
    print_json(document);
    return ExitCode::kOk;
  }
  std::printf("%s: %zu of %zu entries %s, %s -> %s bytes", store->root().c_str(),
              report->removed.size(), report->entries_before,
              arguments.dry_run ? "would go" : "removed", with_commas(report->bytes_before).c_str(),
              with_commas(report->bytes_after).c_str());
  if (report->kept_in_use != 0) std::printf("; %zu in use", report->kept_in_use);
  if (report->kept_pinned != 0) std::printf("; %zu pinned", report->kept_pinned);
  std::printf("\n");
  for (const std::string& path : report->with_unwanted) {
    std::printf("holds revoked kernels, and stays: %s\n", path.c_str());
  }
  return ExitCode::kOk;
}

}  // namespace

void add_gc_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("gc", kGcHelp);
  const auto arguments = std::make_shared<GcArguments>();
  command->add_option("--max-size", arguments->max_size, "What the store may have: 500MB, 2GiB");
  command->add_flag("--revoked", arguments->revoked, "Remove the entries of revoked kernels");
  command
      ->add_option("--pin", arguments->pins,
                   "Keep every SHA-256 in this file or shipped manifest; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", arguments->dry_run, "Remove nothing, say what would go");
  command->add_option("--store", arguments->store, "Folder of the store");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_gc(*arguments, context.common); });
}

}  // namespace cubist::tools
