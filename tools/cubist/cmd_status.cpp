#include <algorithm>
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
#include "print_json.h"
#include "registry/store_status.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

struct StatusArguments {
  std::vector<std::string> manifests;
  std::string store;
  std::string arch;
  bool offline = false;
};

constexpr const char* kStatusHelp =
    R"(Shows what lies where: each layer of the store in search order, and how much of a
manifest's kernels each layer serves. Needs no network and no GPU, and writes nothing;
entries are judged by size ('cubist verify' hashes them).

With --offline it answers whether this machine can do without a network: it ends with 0
if every kernel is there and with 7, naming what is missing, if not.

Examples:
  cubist status
  cubist status --manifest flashinfer-0.6.13
  cubist status --manifest M.json --arch sm_100f --offline --json)";

struct ManifestCoverage {
  std::string name;
  std::size_t kernels = 0;
  std::size_t revoked = 0;  ///< not among those
  Coverage coverage;
};

struct StatusReport {
  std::vector<LayerStatus> layers;
  std::vector<Manifest> manifests;
  std::vector<ManifestCoverage> coverage;
};

Result<StatusReport> look(const StatusArguments& arguments, const Store& store) {
  note_no_serials();
  StatusReport report;
  const auto arch = parse_sm_arch(arguments.arch);
  if (!arguments.arch.empty() && !arch) {
    return fail(StatusCode::kInvalidArgument, "--arch {}: expected e.g. sm_90a or sm_100f",
                arguments.arch);
  }
  for (const std::string& name : arguments.manifests) {
    CUBIST_ASSIGN_OR_RETURN(Manifest manifest, open_manifest(name));
    report.manifests.push_back(std::move(manifest));
  }
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  for (const Manifest& manifest : report.manifests) {
    std::vector<const KernelRecord*> records;
    std::size_t barred = 0;
    for (const Pack& pack : manifest.packs) {
      for (const KernelRecord& kernel : pack.kernels) {
        if (arch && kernel.traits.arch != *arch) continue;
        if (revoked->contains(kernel.sha256)) {
          ++barred;  // nobody needs it
        } else {
          records.push_back(&kernel);
        }
      }
    }
    CUBIST_ASSIGN_OR_RETURN(Coverage found, coverage(store, records));
    report.coverage.push_back({manifest.name, records.size(), barred, std::move(found)});
  }
  report.layers = layer_status(store);
  return report;
}

Json to_json(const StatusReport& report) {
  Json layers = Json::array();
  for (const LayerStatus& layer : report.layers) {
    Json one = {{"root", layer.root},
                {"exists", layer.exists},
                {"writable", layer.writable},
                {"entries", layer.entries},
                {"bytes", layer.bytes},
                {"bundles", layer.bundles},
                {"bundled_kernels", layer.bundled_kernels},
                {"bundle_bytes", layer.bundle_bytes},
                {"unfinished", layer.unfinished},
                {"remembered_wheels", layer.directories},
                {"file_system", layer.file_system}};
    if (layer.free_bytes) one["free_bytes"] = *layer.free_bytes;
    if (layer.error) one["error"] = error_json(*layer.error);
    layers.push_back(std::move(one));
  }
  Json manifests = Json::array();
  for (const ManifestCoverage& one : report.coverage) {
    Json missing = Json::array();
    for (const KernelRecord* record : one.coverage.missing) {
      missing.push_back({{"name", record->name}, {"sha256", record->sha256.hex()}});
    }
    manifests.push_back({{"name", one.name},
                         {"kernels", one.kernels},
                         {"revoked", one.revoked},
                         {"complete", one.coverage.complete()},
                         {"served_by_layer", one.coverage.served},
                         {"missing_bytes", one.coverage.missing_bytes},
                         {"missing", std::move(missing)}});
  }
  return {{"layers", std::move(layers)}, {"manifests", std::move(manifests)}};
}

void print_layers(const StatusReport& report) {
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const LayerStatus& layer = report.layers[i];
    const char* kind = i == 0 ? "store" : "base layer";
    if (layer.error) {
      std::printf("%s %s\n  cannot be read: %s\n", kind, layer.root.c_str(),
                  layer.error->message().c_str());
    } else if (!layer.exists) {
      std::printf("%s %s\n  not there yet\n", kind, layer.root.c_str());
    } else {
      std::printf("%s %s\n  %s entries, %s bytes; %s, %s, %s bytes free\n", kind,
                  layer.root.c_str(), with_commas(layer.entries).c_str(),
                  with_commas(layer.bytes).c_str(),
                  i != 0           ? "never written"
                  : layer.writable ? "writable"
                                   : "not writable",
                  layer.file_system.c_str(), with_commas(layer.free_bytes.value_or(0)).c_str());
    }
    if (layer.bundles != 0) {
      std::printf("  %s kernels in %zu bundles of %s bytes\n",
                  with_commas(layer.bundled_kernels).c_str(), layer.bundles,
                  with_commas(layer.bundle_bytes).c_str());
    }
    if (layer.unfinished != 0) std::printf("  %zu unfinished files\n", layer.unfinished);
  }
}

void print_coverage(const StatusReport& report) {
  constexpr std::size_t kShown = 20;
  for (const ManifestCoverage& one : report.coverage) {
    std::printf("manifest %s: %s kernels, %s\n", one.name.c_str(), with_commas(one.kernels).c_str(),
                one.coverage.complete()
                    ? "complete"
                    : fmt::format("{} missing ({} bytes)", with_commas(one.coverage.missing.size()),
                                  with_commas(one.coverage.missing_bytes))
                          .c_str());
    if (one.revoked != 0) {
      std::printf("  %s more are revoked, and not counted\n", with_commas(one.revoked).c_str());
    }
    for (std::size_t i = 0; i < report.layers.size(); ++i) {
      if (one.coverage.served[i] == 0) continue;
      std::printf("  %s served by %s\n", with_commas(one.coverage.served[i]).c_str(),
                  report.layers[i].root.c_str());
    }
    for (std::size_t i = 0; i < std::min(kShown, one.coverage.missing.size()); ++i) {
      std::printf("  missing: %s\n", one.coverage.missing[i]->name.c_str());
    }
    if (one.coverage.missing.size() > kShown) {
      std::printf("  missing: ... and %zu more (--json names all)\n",
                  one.coverage.missing.size() - kShown);
    }
  }
}

ExitCode run_status(const StatusArguments& arguments, const CommonOptions& common) {
  const auto store = Store::open(arguments.store);
  if (!store) return report_error(common, store.error());
  const auto report = look(arguments, *store);
  if (!report) return report_error(common, report.error());
  const bool complete =
      std::all_of(report->coverage.begin(), report->coverage.end(),
                  [](const ManifestCoverage& one) { return one.coverage.complete(); });
  Status status;
  if (!complete && arguments.offline) {
    status =
        fail(StatusCode::kOffline,
             "kernels are missing; 'cubist fetch' gets them where there is a network, and a "
             "bundle brings them where there is none ('cubist bundle install', docs/bundles.md)");
  }
  if (common.json) {
    print_json(to_json(*report), status);
  } else {
    print_layers(*report);
    print_coverage(*report);
  }
  return print_outcome(status);
}

}  // namespace

void add_status_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("status", kStatusHelp);
  const auto arguments = std::make_shared<StatusArguments>();
  command
      ->add_option("-m,--manifest", arguments->manifests,
                   "How much of it is there: a file, or a shipped name; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--arch", arguments->arch, "Kernels of one architecture only");
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_flag("--offline", arguments->offline, "End with 7 if something is missing");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_status(*arguments, context.common); });
}

}  // namespace cubist::tools
