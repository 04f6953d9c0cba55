#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "bundle/kept_bundles.h"
#include "command.h"
#include "cubin/cross_check.h"
#include "fetch_support.h"
#include "interrupt.h"
#include "print_json.h"
#include "registry/fetch.h"
#include "registry/staged_file.h"
#include "registry/store_check.h"
#include "registry/store_file.h"
#include "set_items.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyArguments {
  std::string manifest;
  std::string working_set;
  std::string store;
  bool deep = false;
  bool repair = false;
  unsigned threads = 0;
  SourceArguments source;
};

constexpr const char* kVerifyHelp =
    R"(Hashes what lies in the store again and reports what is missing or broken.

Without --manifest every kernel of every layer is checked, entries and those in bundles; with
it, all kernels of the manifest, and those that are missing are named; with --working-set,
those of the set. Nothing is written, unless --repair asks for it: then just the broken ones
(and the missing ones that were asked for) are fetched again; the others keep their files. A
kernel that is broken in a bundle becomes an entry of its own, which then is the one that
is used. --deep also reads each cubin and compares architecture, entry, threads and shared
memory with the manifest; without a manifest it only reads them.

Ends with 0 if all is well (a store that is not there yet has nothing broken), 4 if an
entry is broken or revoked, 7 if one is missing.

Examples:
  cubist verify                                 what is in the store
  cubist verify --working-set set.json          what a deployment needs
  cubist verify --manifest flashinfer-0.6.13    every kernel of a release
  cubist verify --deep --working-set set.json
  cubist verify --repair --source ./flashinfer_cubin.whl)";

/// A kernel that lies in the store and must not be used.
struct RevokedEntry {
  std::string path;
  Sha256Digest sha256;
  std::string why;
};

/// Everything a run knows: manifests, what of them is wanted, and what was found.
struct Verification {
  std::vector<std::unique_ptr<Manifest>> manifests;
  std::unordered_map<Sha256Digest, FetchItem> known;
  std::unordered_map<Sha256Digest, const Manifest*> origin;
  std::vector<EntryToCheck> entries;
  std::vector<const KernelRecord*> missing;
  std::vector<std::string> strangers;
  std::vector<RevokedEntry> revoked;
  CheckReport report;
  std::vector<std::string> removed;
  std::vector<bool> healed;  ///< by finding: a look after the repair found nothing
  std::size_t repaired = 0;
  bool compared = false;  ///< a deep look had a manifest to compare with

  bool is_healed(std::size_t finding) const { return finding < healed.size() && healed[finding]; }
  bool is_removed(const std::string& path) const {
    return std::find(removed.begin(), removed.end(), path) != removed.end();
  }
};

/// A file, or FILE:KERNEL for one in a bundle.
std::string place_of(const EntryToCheck& entry) {
  if (entry.bundle == nullptr) return entry.path;
  return fmt::format("{}:{}", entry.path, entry_relative_path(entry.sha256));
}

void add_manifest(Verification& verification, Manifest manifest) {
  verification.manifests.push_back(std::make_unique<Manifest>(std::move(manifest)));
  const Manifest& kept = *verification.manifests.back();
  for (const Pack& pack : kept.packs) {
    for (const KernelRecord& kernel : pack.kernels) {
      verification.known.emplace(kernel.sha256, FetchItem{&pack, &kernel});
      verification.origin.emplace(kernel.sha256, &kept);
    }
  }
}

/// Those of the manifest, or of the working set alone.
Result<std::vector<const KernelRecord*>> wanted_records(const VerifyArguments& arguments,
                                                        Verification& verification) {
  std::vector<const KernelRecord*> records;
  if (arguments.working_set.empty()) {
    CUBIST_ASSIGN_OR_RETURN(Manifest manifest, open_manifest(arguments.manifest));
    add_manifest(verification, std::move(manifest));
    records.reserve(verification.known.size());
    for (const auto& [digest, item] : verification.known) records.push_back(item.record);
    return records;
  }
  const std::string& path = arguments.working_set;
  CUBIST_ASSIGN_OR_RETURN(const auto set, workingset::load_set(path));
  CUBIST_ASSIGN_OR_RETURN(Manifest manifest, open_manifest_of_set(arguments.manifest, set, path));
  add_manifest(verification, std::move(manifest));
  CUBIST_ASSIGN_OR_RETURN(const auto items,
                          find_set_items(set, path, *verification.manifests.back()));
  for (const FetchItem& item : items) {
    records.push_back(item.record);
    verification.known[item.record->sha256] = item;  // the pack that the set means
  }
  return records;
}

/// Names the revoked kernels that are there; of those that are not none is missed.
Status set_revoked_aside(Verification& verification, bool of_set) {
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  if (revoked->empty()) return {};
  for (const EntryToCheck& entry : verification.entries) {
    if (auto why = revoked->why(entry.sha256)) {
      verification.revoked.push_back({place_of(entry), entry.sha256, std::move(*why)});
    }
  }
  const std::size_t absent = std::erase_if(verification.missing, [&](const KernelRecord* record) {
    return revoked->contains(record->sha256);
  });
  if (absent != 0 && of_set) {
    log(LogLevel::kWarning,
        "{} kernels of the working set are revoked and not in the store, where they are not "
        "missed: the set is older than the list; make it anew with 'cubist working-set'",
        absent);
  }
  return {};
}

/// Bundles that serve kernels although what else is in them is damaged: serving looks at the
/// directory alone, so nothing else tells.
Status add_broken_bundles(const Store& store, std::vector<EntryToCheck>& entries) {
  CUBIST_ASSIGN_OR_RETURN(const auto kept, bundle::list_kept_bundles(store));
  for (const bundle::KeptBundle& one : kept) {
    if (!one.error) continue;
    const bool told = std::any_of(entries.begin(), entries.end(), [&](const EntryToCheck& entry) {
      return entry.broken_bundle && entry.path == one.path;
    });
    if (told) continue;
    EntryToCheck entry;
    entry.path = one.path;
    entry.broken_bundle = one.error;
    entry.still_serves = true;
    entries.push_back(std::move(entry));
  }
  return {};
}

Status find_what_to_check(const VerifyArguments& arguments, const Store& store,
                          Verification& verification) {
  if (arguments.manifest.empty() && arguments.working_set.empty()) {
    CUBIST_ASSIGN_OR_RETURN(verification.entries, list_entries(store, verification.strangers));
    CUBIST_RETURN_IF_ERROR(add_broken_bundles(store, verification.entries));
    return set_revoked_aside(verification, false);
  }
  CUBIST_ASSIGN_OR_RETURN(auto records, wanted_records(arguments, verification));
  verification.compared = arguments.deep;
  std::sort(records.begin(), records.end(),
            [](const KernelRecord* a, const KernelRecord* b) { return a->sha256 < b->sha256; });
  CUBIST_ASSIGN_OR_RETURN(verification.entries, find_entries(store, records, verification.missing));
  return set_revoked_aside(verification, !arguments.working_set.empty());
}

Status deep_look(const Verification& verification, const EntryToCheck& entry,
                 std::span<const std::uint8_t> bytes) {
  const auto known = verification.known.find(entry.sha256);
  CUBIST_ASSIGN_OR_RETURN(const CubinFile cubin, parse_cubin(bytes, entry.path));
  if (known == verification.known.end()) return {};
  const FetchItem& item = known->second;
  std::string text;
  for (const Disagreement& one : cross_check(cubin, *item.record, item.pack->param_layout)) {
    text += (text.empty() ? "" : "; ") + to_string(one);
  }
  if (text.empty()) return {};
  return fail(StatusCode::kIntegrity, "'{}' ('{}'): {}", entry.path, item.record->name, text);
}

Result<CheckReport> check(const VerifyArguments& arguments, const CommonOptions& common,
                          const InterruptGuard& interrupt, const Verification& verification) {
  CheckOptions options;
  options.threads = arguments.threads != 0 ? arguments.threads
                                           : std::max(1U, std::thread::hardware_concurrency());
  options.cancel = interrupt.flag();
  const bool terminal = !common.quiet && !common.json && ::isatty(STDERR_FILENO) == 1;
  if (terminal) {
    options.progress = [](const CheckProgress& progress) {
      std::fprintf(stderr, "\r%zu of %zu files\033[K", progress.files_done, progress.files_total);
    };
  }
  if (arguments.deep) {
    options.deep = [&](std::size_t entry, std::span<const std::uint8_t> bytes) {
      return deep_look(verification, verification.entries[entry], bytes);
    };
  }
  auto report = check_entries(verification.entries, options);
  if (terminal) std::fputs("\r\033[K", stderr);
  if (report && arguments.manifest.empty() && arguments.working_set.empty()) {
    // What was listed and is gone was taken by gc or 'bundle remove' meanwhile: nothing is broken.
    std::erase_if(report->findings, [](const EntryFinding& finding) {
      return finding.error.code() == StatusCode::kNotFound;
    });
  }
  return report;
}

/// What --repair without --manifest can get back: whatever a manifest that has a name knows.
Status add_named_manifests(Verification& verification) {
  CUBIST_ASSIGN_OR_RETURN(const std::vector<std::string> names, manifest_names());
  for (const std::string& name : names) {
    auto manifest = open_manifest(name);
    if (manifest) {
      add_manifest(verification, std::move(*manifest));
    } else {
      log(LogLevel::kWarning, "{}", manifest.error().message());
    }
  }
  return {};
}

/// Looks again at what was broken, so that nothing is called repaired that is not. A kernel that is
/// broken in a bundle has an entry of its own now.
Status look_again(const VerifyArguments& arguments, const Store& store,
                  Verification& verification) {
  const auto& findings = verification.report.findings;
  std::vector<EntryToCheck> entries;
  for (const EntryFinding& one : findings) {
    EntryToCheck entry = verification.entries[one.entry];
    if (entry.bundle != nullptr) entry.path = entry_path(store.root(), entry.sha256);
    entry.bundle = nullptr;
    entries.push_back(std::move(entry));
  }
  CheckOptions options;
  if (arguments.deep) {
    options.deep = [&](std::size_t entry, std::span<const std::uint8_t> bytes) {
      return deep_look(verification, entries[entry], bytes);
    };
  }
  CUBIST_ASSIGN_OR_RETURN(const CheckReport report, check_entries(entries, options));
  verification.healed.assign(findings.size(), true);
  for (const EntryFinding& one : report.findings) verification.healed[one.entry] = false;
  return {};
}

/// A kernel that lies well elsewhere in the store is not fetched; its broken entry, or the one in a
/// bundle, is replaced by an entry of the same bytes.
Status copy_good_ones(const Store& store, const Verification& verification) {
  for (const EntryFinding& finding : verification.report.findings) {
    const Sha256Digest& digest = verification.entries[finding.entry].sha256;
    const auto known = verification.known.find(digest);
    if (known == verification.known.end() || finding.bytes_are_right) continue;
    const auto good = store.open_verified(*known->second.record);
    if (good && *good) CUBIST_RETURN_IF_ERROR(store.install(**good));
  }
  return {};
}

Status repair(const VerifyArguments& arguments, const CommonOptions& common, const Store& store,
              const InterruptGuard& interrupt, Verification& verification) {
  if (verification.manifests.empty()) CUBIST_RETURN_IF_ERROR(add_named_manifests(verification));
  std::unordered_map<const Manifest*, std::vector<FetchItem>> wanted;
  std::unordered_set<Sha256Digest> seen;
  const auto is_revoked = [&](const Sha256Digest& digest) {
    return std::any_of(verification.revoked.begin(), verification.revoked.end(),
                       [&](const RevokedEntry& one) { return one.sha256 == digest; });
  };
  const auto want = [&](const Sha256Digest& digest) {
    const auto known = verification.known.find(digest);
    if (known == verification.known.end() || is_revoked(digest)) return false;
    if (seen.insert(digest).second) {
      wanted[verification.origin.at(digest)].push_back(known->second);
    }
    return true;
  };
  for (const EntryFinding& finding : verification.report.findings) {
    const EntryToCheck& entry = verification.entries[finding.entry];
    if (finding.bytes_are_right && verification.known.contains(entry.sha256)) continue;
    if (want(entry.sha256)) continue;
    // No manifest says what it should be, so a broken one is of no use to anybody.
    if (!entry.path.starts_with(store.root() + "/") || entry.bundle != nullptr) continue;
    if (entry.broken_bundle && entry.broken_bundle->code() != StatusCode::kIntegrity) continue;
    if (entry.still_serves) continue;
    const int depth = entry.broken_bundle ? kStoreFileDepth : kEntryDepth;
    if (unlink_in_store(entry.path, depth) == 0 ||
        (errno == EISDIR && put_folder_aside(entry.path, kEntryDepth))) {
      verification.removed.push_back(entry.path);
    }
  }
  for (const KernelRecord* record : verification.missing) want(record->sha256);
  for (const auto& [manifest, items] : wanted) {
    CUBIST_ASSIGN_OR_RETURN(FetchOptions options, fetch_options(arguments.source, *manifest));
    options.cancel = interrupt.flag();
    options.rehash_present = true;
    options.broken_is_known = true;
    FetchProgressLine line(common);
    options.progress = [&](const FetchProgress& progress) { line.show(progress); };
    CUBIST_ASSIGN_OR_RETURN(const FetchReport report, fetch(store, items, options));
    verification.repaired += report.count(FetchedFile::State::kFetched);
    CUBIST_RETURN_IF_ERROR(report.status());
  }
  CUBIST_RETURN_IF_ERROR(copy_good_ones(store, verification));
  return look_again(arguments, store, verification);
}

/// "broken", "repaired" or "removed".
const char* fate(const Verification& verification, std::size_t finding) {
  const EntryToCheck& entry = verification.entries[verification.report.findings[finding].entry];
  if (verification.is_removed(entry.path)) return "removed";
  return verification.is_healed(finding) ? "repaired" : "broken";
}

/// Whether any layer has a folder.
bool is_there(const Store& store) {
  const std::vector<std::string> layers = store.layers();
  return std::any_of(layers.begin(), layers.end(), [](const std::string& layer) {
    std::error_code error;
    return std::filesystem::is_directory(layer, error);
  });
}

Json report_json(const Verification& verification, const Store& store) {
  Json broken = Json::array();
  for (std::size_t i = 0; i < verification.report.findings.size(); ++i) {
    const EntryFinding& finding = verification.report.findings[i];
    const EntryToCheck& entry = verification.entries[finding.entry];
    broken.push_back({{"path", entry.path},
                      {"sha256", entry.sha256.hex()},
                      {"state", fate(verification, i)},
                      {"error", error_json(finding.error)}});
  }
  Json revoked = Json::array();
  for (const RevokedEntry& one : verification.revoked) {
    revoked.push_back({{"path", one.path}, {"sha256", one.sha256.hex()}, {"why", one.why}});
  }
  Json missing = Json::array();
  for (const KernelRecord* record : verification.missing) {
    missing.push_back({{"name", record->name}, {"sha256", record->sha256.hex()}});
  }
  return {{"store", store.root()},
          {"layers", store.layers()},
          {"exists", is_there(store)},
          {"compared", verification.compared},
          {"checked", verification.report.checked},
          {"bytes", verification.report.bytes},
          {"seconds", verification.report.seconds},
          {"broken", std::move(broken)},
          {"revoked", std::move(revoked)},
          {"missing", std::move(missing)},
          {"strangers", verification.strangers},
          {"repaired", verification.repaired},
          {"removed", verification.removed}};
}

void print_findings(const Verification& verification) {
  for (std::size_t i = 0; i < verification.report.findings.size(); ++i) {
    const EntryFinding& finding = verification.report.findings[i];
    const EntryToCheck& entry = verification.entries[finding.entry];
    if (verification.is_removed(entry.path)) {
      std::printf("removed: %s (no manifest says where to get it)\n", entry.path.c_str());
    } else if (verification.is_healed(i)) {
      std::printf("repaired: %s%s\n", place_of(entry).c_str(),
                  entry.bundle != nullptr ? ", by an entry of its own" : "");
    } else {
      std::printf("broken: %s\n", finding.error.message().c_str());
    }
  }
}

void print_report(const VerifyArguments& arguments, const Verification& verification,
                  const Store& store) {
  constexpr std::size_t kShown = 20;
  if (!is_there(store)) {
    std::printf("no store is at '%s': nothing was checked ('cubist fetch' makes one)\n",
                store.root().c_str());
  }
  print_findings(verification);
  for (const RevokedEntry& one : verification.revoked) {
    std::printf("revoked: %s: %s\n", one.path.c_str(), one.why.c_str());
  }
  for (std::size_t i = 0; i < std::min(kShown, verification.missing.size()); ++i) {
    std::printf("missing: %s\n", verification.missing[i]->name.c_str());
  }
  if (verification.missing.size() > kShown) {
    std::printf("missing: ... and %zu more (--json names all)\n",
                verification.missing.size() - kShown);
  }
  for (const std::string& path : verification.strangers) {
    std::printf("not an entry: %s\n", path.c_str());
  }
  std::printf("%zu entries hashed (%s bytes), %zu broken, %zu missing", verification.report.checked,
              with_commas(verification.report.bytes).c_str(), verification.report.findings.size(),
              verification.missing.size());
  if (verification.repaired != 0) std::printf(", %zu fetched again", verification.repaired);
  std::printf("; %.1f s\n", verification.report.seconds);
  if (arguments.deep) {
    std::puts(
        verification.compared
            ? "--deep: each cubin was read and compared with the manifest"
            : "--deep: each cubin was read; to compare it, name a --manifest or --working-set");
  }
}

/// The fetch that brings what is missing.
std::string fetch_hint(const VerifyArguments& arguments) {
  const std::string store = arguments.store.empty() ? "" : " --store " + arguments.store;
  const std::string manifest =
      arguments.manifest.empty() ? "" : " --manifest " + arguments.manifest;
  if (!arguments.working_set.empty()) {
    return fmt::format("'cubist fetch{} --working-set {}{}' gets them", manifest,
                       arguments.working_set, store);
  }
  return fmt::format(
      "'cubist fetch{}{} --all' gets them, '--kernel NAME' in place of --all one of them, "
      "'--working-set FILE' those a deployment needs ('cubist verify' alone checks what is there)",
      manifest, store);
}

/// The file is what its digest says, so to fetch it again would change nothing.
Status wrong_statement(const std::string& path) {
  return fail(
      StatusCode::kIntegrity,
      "'{}' has the very bytes that its digest names, so fetching it again would change "
      "nothing: what the manifest says of them is wrong, or the release is; 'cubist inspect "
      "{}' shows what the cubin says, 'cubist import' writes a manifest from a release",
      path, path);
}

/// Entries that a repair did not mend. Those of a layer below are not ours to write; the store's
/// own entry takes their place.
Status left_broken(const Verification& verification, const Store& store) {
  const auto& findings = verification.report.findings;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const std::string& path = verification.entries[findings[i].entry].path;
    if (verification.is_healed(i) || verification.is_removed(path)) continue;
    if (findings[i].bytes_are_right) return wrong_statement(path);
    if (verification.entries[findings[i].entry].still_serves) {
      return fail(
          findings[i].error.code(),
          "{}; its kernels serve all the same, so it was left as it is: install or pull the "
          "bundle again",
          findings[i].error.message());
    }
    if (verification.entries[findings[i].entry].broken_bundle) {
      return fail(
          findings[i].error.code(),
          "{}; it was left as it is: make it readable, or remove or replace it where it lies",
          findings[i].error.message());
    }
    if (!path.starts_with(store.root() + "/")) continue;
    if (const EntryToCheck& entry = verification.entries[findings[i].entry];
        entry.bundle != nullptr && !verification.known.contains(entry.sha256)) {
      return fail(findings[i].error.code(),
                  "{}; no manifest at hand says where to get this kernel: install or pull the "
                  "bundle again",
                  findings[i].error.message());
    }
    return fail(findings[i].error.code(),
                "'{}' is as its source has it, and yet not right; the manifest or the source is "
                "wrong ('cubist inspect FILE' shows what the cubin says)",
                path);
  }
  return {};
}

Status revoked_outcome(const Verification& verification) {
  if (verification.revoked.empty()) return {};
  return fail(StatusCode::kUntrusted,
              "{} revoked kernels are in the store, '{}' first; nothing selects, loads or fetches "
              "them; 'cubist gc --revoked' removes entries and names bundles, and its help says "
              "how to replace those",
              verification.revoked.size(), verification.revoked.front().path);
}

Status outcome(const VerifyArguments& arguments, const Verification& verification,
               const Store& store, const Status& repaired) {
  if (!repaired) return repaired;
  if (arguments.repair) {
    CUBIST_RETURN_IF_ERROR(left_broken(verification, store));
    return revoked_outcome(verification);
  }
  const auto& findings = verification.report.findings;
  if (!findings.empty()) {
    if (std::all_of(findings.begin(), findings.end(),
                    [](const EntryFinding& one) { return one.bytes_are_right; })) {
      return wrong_statement(verification.entries[findings.front().entry].path);
    }
    const bool unreadable =
        std::all_of(findings.begin(), findings.end(),
                    [](const EntryFinding& one) { return one.error.code() == StatusCode::kIo; });
    return fail(unreadable ? StatusCode::kIo : StatusCode::kIntegrity,
                "{} entries are broken; 'cubist verify --repair' fetches them again",
                findings.size());
  }
  if (!verification.missing.empty()) {
    return fail(
        StatusCode::kOffline,
        "{} kernels are missing; {}; without a network, a bundle brings them ('cubist bundle "
        "install')",
        verification.missing.size(), fetch_hint(arguments));
  }
  return revoked_outcome(verification);
}

ExitCode run_verify(const VerifyArguments& arguments, const CommonOptions& common) {
  const auto store = Store::open(arguments.store);
  if (!store) return report_error(common, store.error());
  Verification verification;
  if (const Status found = find_what_to_check(arguments, *store, verification); !found) {
    return report_error(common, found.error());
  }
  const InterruptGuard interrupt;
  auto report = check(arguments, common, interrupt, verification);
  if (!report) return report_error(common, report.error());
  verification.report = std::move(*report);
  Status repaired;
  if (arguments.repair) repaired = repair(arguments, common, *store, interrupt, verification);
  const Status status = outcome(arguments, verification, *store, repaired);
  if (common.json) {
    print_json(report_json(verification, *store), status);
  } else {
    print_report(arguments, verification, *store);
  }
  return print_outcome(status);
}

}  // namespace

void add_verify_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("verify", kVerifyHelp);
  const auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("-m,--manifest", arguments->manifest,
                      "Check its kernels: a file, or a shipped name");
  command->add_option("--working-set", arguments->working_set,
                      "Check the kernels of a file that 'cubist working-set -o' wrote");
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_flag("--deep", arguments->deep, "Also compare each cubin with the manifest");
  command->add_flag("--repair", arguments->repair, "Fetch again what is broken or missing");
  command
      ->add_option("--threads", arguments->threads, "Threads that hash (default: all processors)")
      ->check(CLI::Range(1, 1024));
  add_source_options(*command, arguments->source);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_verify(*arguments, context.common); });
}

}  // namespace cubist::tools
