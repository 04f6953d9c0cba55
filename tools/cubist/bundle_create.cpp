#include "bundle_create.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "bundle/write_bundle.h"
#include "bundle_notices.h"
#include "document/json_text.h"
#include "interrupt.h"
#include "output_file.h"
#include "print_json.h"
#include "registry/source.h"
#include "runtime/manifest_path.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Packs that kernels come from, in the manifests' order, each once.
std::vector<bundle::PackOrigin> origins_of(const std::vector<SelectedManifest>& manifests) {
  std::vector<bundle::PackOrigin> origins;
  for (const SelectedManifest& selected : manifests) {
    for (const Pack& pack : selected.manifest->packs) {
      const bool used = std::any_of(selected.items.begin(), selected.items.end(),
                                    [&](const FetchItem& item) { return item.pack == &pack; });
      if (!used) continue;
      bundle::PackOrigin origin{pack.name, pack.version, pack.license, {}};
      for (const Source& source : pack.sources) origin.sources.push_back(to_string(source));
      if (std::find(origins.begin(), origins.end(), origin) == origins.end()) {
        origins.push_back(std::move(origin));
      }
    }
  }
  return origins;
}

std::string default_name(const bundle::Contents& contents) {
  std::vector<std::string> names;
  for (const bundle::ManifestInput& manifest : contents.manifests) names.push_back(manifest.name);
  std::sort(names.begin(), names.end());
  return joined(names, "+");
}

std::vector<std::string> licence_folders(const std::vector<SelectedManifest>& manifests) {
  std::vector<std::string> folders;
  for (const SelectedManifest& selected : manifests) folders.push_back(selected.manifest->folder);
  const std::vector<std::string> more = runtime::manifest_folders();
  folders.insert(folders.end(), more.begin(), more.end());
  return folders;
}

Result<bundle::Contents> contents_of(const std::vector<SelectedManifest>& manifests,
                                     const BundleCreateArguments& arguments) {
  bundle::Contents contents;
  contents.tool = "cubist " CUBIST_VERSION_STRING;
  contents.packs = origins_of(manifests);
  for (const SelectedManifest& selected : manifests) {
    contents.manifests.push_back({selected.manifest->name, selected.text, selected.signature});
    for (const FetchItem& item : selected.items) {
      contents.kernels.push_back({item.record->sha256, item.record->size_bytes});
    }
  }
  contents.name = arguments.name.empty() ? default_name(contents) : arguments.name;
  CUBIST_ASSIGN_OR_RETURN(BundleNotices notices,
                          make_notices(contents.packs, licence_folders(manifests),
                                       arguments.license_files, arguments.notice_files));
  contents.license = std::move(notices.license);
  contents.notice = std::move(notices.notice);
  return contents;
}

/// Every kernel into the store.
Result<std::size_t> fetch_missing(const std::vector<SelectedManifest>& manifests,
                                  const Store& store, const BundleCreateArguments& arguments,
                                  const CommonOptions& common, const std::atomic<bool>* cancel) {
  std::size_t fetched = 0;
  for (const SelectedManifest& selected : manifests) {
    CUBIST_ASSIGN_OR_RETURN(FetchOptions options,
                            fetch_options(arguments.source, *selected.manifest));
    options.cancel = cancel;
    FetchProgressLine line(common);
    options.progress = [&](const FetchProgress& progress) { line.show(progress); };
    CUBIST_ASSIGN_OR_RETURN(const FetchReport report, fetch(store, selected.items, options));
    CUBIST_RETURN_IF_ERROR(report.status());
    fetched += report.count(FetchedFile::State::kFetched);
  }
  return fetched;
}

bundle::KernelReader reader_from(const Store& store,
                                 const std::vector<SelectedManifest>& manifests) {
  std::unordered_map<Sha256Digest, const KernelRecord*> records;
  for (const SelectedManifest& selected : manifests) {
    for (const FetchItem& item : selected.items) records[item.record->sha256] = item.record;
  }
  return [&store,
          records = std::move(records)](const bundle::Kernel& kernel) -> Result<VerifiedCubin> {
    const KernelRecord& record = *records.at(kernel.sha256);
    CUBIST_ASSIGN_OR_RETURN(auto cubin, store.open_verified(record));
    if (cubin) return std::move(*cubin);
    return fail(StatusCode::kNotFound, "kernel '{}' was removed from the store meanwhile",
                record.name);
  };
}

/// Writing begins once all was read, so that nothing else would keep an input from being lost.
Status check_no_input_is_output(const std::vector<SelectedManifest>& manifests,
                                const BundleCreateArguments& arguments) {
  std::vector<std::string> inputs = {arguments.selection.working_set};
  for (const SelectedManifest& selected : manifests) {
    inputs.push_back(selected.path);
    inputs.push_back(selected.path + ".minisig");
  }
  for (const auto* files : {&arguments.license_files, &arguments.notice_files}) {
    inputs.insert(inputs.end(), files->begin(), files->end());
  }
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input.empty() || !std::filesystem::equivalent(input, arguments.output, error)) continue;
    return fail(StatusCode::kInvalidArgument,
                "-o '{}' is '{}', which goes into the bundle; give the bundle a name of its own",
                arguments.output, input);
  }
  return {};
}

struct Created {
  bundle::WrittenBundle bundle;
  std::size_t fetched = 0;
};

Result<Created> create(const BundleCreateArguments& arguments, const CommonOptions& common) {
  CUBIST_ASSIGN_OR_RETURN(const auto manifests, select_for_bundle(arguments.selection));
  CUBIST_RETURN_IF_ERROR(check_no_input_is_output(manifests, arguments));
  CUBIST_ASSIGN_OR_RETURN(const bundle::Contents contents, contents_of(manifests, arguments));
  CUBIST_ASSIGN_OR_RETURN(const Store store, Store::open(arguments.store));
  CUBIST_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(arguments.output));

  const InterruptGuard interrupt;
  Created created;
  CUBIST_ASSIGN_OR_RETURN(created.fetched,
                          fetch_missing(manifests, store, arguments, common, interrupt.flag()));
  bundle::WriteOptions options;
  options.stored = arguments.stored;
  options.threads = std::max(1U, std::thread::hardware_concurrency());
  options.cancel = interrupt.flag();
  CUBIST_ASSIGN_OR_RETURN(
      created.bundle,
      bundle::write_bundle(
          contents, reader_from(store, manifests),
          [&](std::span<const std::uint8_t> bytes) { return output.write(bytes); }, options));
  CUBIST_RETURN_IF_ERROR(output.finish());
  return created;
}

Json created_json(const Created& created, const std::string& output) {
  const bundle::Description& description = created.bundle.description;
  Json manifests = Json::array();
  for (const bundle::ManifestPart& manifest : description.manifests) {
    manifests.push_back({{"name", manifest.name}, {"signed", manifest.signature.has_value()}});
  }
  return {{"output", output},
          {"name", description.name},
          {"identity", created.bundle.identity.hex()},
          {"sha256", created.bundle.sha256.hex()},
          {"size", created.bundle.file_bytes},
          {"kernels", description.kernels.size()},
          {"kernel_bytes", description.kernel_bytes()},
          {"fetched", created.fetched},
          {"manifests", std::move(manifests)}};
}

}  // namespace

ExitCode run_bundle_create(const BundleCreateArguments& arguments, const CommonOptions& common) {
  const bool to_stdout = arguments.output == "-";
  if (to_stdout && common.json) {
    return report_error(common, Error(StatusCode::kInvalidArgument,
                                      "-o - and --json both write to standard output"));
  }
  const auto created = create(arguments, common);
  if (!created) return report_error(common, created.error());
  if (common.json) {
    print_json(created_json(*created, arguments.output));
  } else if (!to_stdout && !common.quiet) {
    const bundle::Description& description = created->bundle.description;
    std::printf(
        "wrote %s: %zu kernels, %s bytes (%s unpacked)\n  identity %s\n", arguments.output.c_str(),
        description.kernels.size(), with_commas(created->bundle.file_bytes).c_str(),
        with_commas(description.kernel_bytes()).c_str(), created->bundle.identity.hex().c_str());
  }
  return ExitCode::kOk;
}

}  // namespace cubist::tools
