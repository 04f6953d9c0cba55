#include "bundle_install.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "bundle/install.h"
#include "bundle/layout.h"
#include "bundle_checks.h"
#include "document/json_text.h"
#include "fetch_support.h"
#include "interrupt.h"
#include "manifest/parse.h"
#include "print_json.h"
#include "registry/store_layout.h"
#include "registry/url.h"
#include "runtime/manifest_path.h"
#include "trust/folder_check.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

// Each waits for the disk part of its time.
constexpr unsigned kMostThreads = 8;

/// A name that already means another manifest, which is searched first, would hide this one.
Status check_hidden(const bundle::Description& description, const std::string& new_name,
                    const std::string& folder) {
  for (const bundle::ManifestPart& manifest : description.manifests) {
    const std::string& name = new_name.empty() ? manifest.name : new_name;
    if (!bundle::is_manifest_name(name)) continue;  // which installing says
    const auto path = runtime::find_manifest(name);
    if (!path || *path == fmt::format("{}/{}.json", folder, name)) continue;
    CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(*path, kMaxManifestBytes));
    const Sha256Digest digest =
        sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    if (digest == manifest.text.sha256) continue;
    return fail(StatusCode::kInvalidArgument,
                "the name '{}' means '{}' here (sha256 {}), not the bundle's manifest (sha256 {}); "
                "nothing was installed. --as NAME gives that one another name",
                name, *path, digest.hex(), manifest.text.sha256.hex());
  }
  return {};
}

FetchProgress as_fetch_progress(const bundle::InstallProgress& progress, double seconds) {
  FetchProgress line;
  line.files_total = progress.kernels_total;
  line.files_done = progress.kernels_done;
  line.bytes_total = progress.bytes_total;
  line.bytes_done = line.received_bytes = progress.bytes_done;
  line.seconds = seconds;
  return line;
}

Result<std::string> absolute_folder(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) return fail(StatusCode::kIo, "'{}' is no path: {}", path, error.message());
  if (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

}  // namespace

Result<Store> store_to_install_into(const std::string& root) {
  CUBIST_ASSIGN_OR_RETURN(StoreOptions options, store_options_from_environment(root));
  if (!root.empty()) options.base_roots.clear();
  CUBIST_ASSIGN_OR_RETURN(const trust::Settings trust, trust_settings());
  Store store(std::move(options));
  for (const std::string& layer : store.layers()) {
    CUBIST_RETURN_IF_ERROR(trust::check_folder(layer, store_folders(), trust.foreign_store,
                                               trust.origins.foreign_store));
  }
  return store;
}

Result<bundle::InstallOptions> install_options(const BundleInstallArguments& arguments,
                                               const std::atomic<bool>* cancel) {
  bundle::InstallOptions options;
  CUBIST_ASSIGN_OR_RETURN(options.manifest_folder, absolute_folder(arguments.manifest_folder));
  const bool by_own_name = arguments.name.empty() && arguments.manifest_folder.empty();
  CUBIST_ASSIGN_OR_RETURN(options.checks,
                          checks_of_user(by_own_name              ? Incoming::kByOwnName
                                         : arguments.name.empty() ? Incoming::kElsewhere
                                                                  : Incoming::kRenamed));
  options.rename_to = arguments.name;
  options.replace = arguments.replace;
  options.unpack = arguments.unpack;
  options.threads = std::clamp(std::thread::hardware_concurrency(), 2U, kMostThreads);
  options.cancel = cancel;
  return options;
}

Status check_no_name_is_hidden(const bundle::Bundle& bundle, const Store& store,
                               const bundle::InstallOptions& options) {
  return check_hidden(bundle.description(), options.rename_to,
                      options.manifest_folder.empty() ? installed_manifest_folder(store.root())
                                                      : options.manifest_folder);
}

namespace {

Result<InstalledBundle> install(const BundleInstallArguments& arguments,
                                const CommonOptions& common) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  if (looks_like_url(arguments.file)) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' is a URL, and install uses no network; fetch kernels from it with 'cubist "
                "fetch --source', or download it first",
                shown_value(arguments.file));
  }
  CUBIST_ASSIGN_OR_RETURN(auto file, open_file_access(arguments.file));
  CUBIST_ASSIGN_OR_RETURN(const auto opened, bundle::Bundle::open(std::move(file)));
  CUBIST_ASSIGN_OR_RETURN(const Store store, store_to_install_into(arguments.store));
  const InterruptGuard interrupt;
  CUBIST_ASSIGN_OR_RETURN(bundle::InstallOptions options,
                          install_options(arguments, interrupt.flag()));
  CUBIST_RETURN_IF_ERROR(check_no_name_is_hidden(opened, store, options));
  FetchProgressLine line(common);
  options.progress = [&](const bundle::InstallProgress& progress) {
    line.show(as_fetch_progress(progress, elapsed()));
  };
  InstalledBundle installed;
  installed.store = store.root();
  CUBIST_ASSIGN_OR_RETURN(installed.report, bundle::install(opened, store, options));
  installed.seconds = elapsed();
  return installed;
}

}  // namespace

nlohmann::ordered_json installed_json(const InstalledBundle& installed) {
  Json manifests = Json::array();
  for (const bundle::InstalledManifest& manifest : installed.report.manifests) {
    manifests.push_back({{"name", manifest.name},
                         {"path", manifest.path},
                         {"state", manifest.was_present ? "present" : "installed"}});
  }
  return {{"store", installed.store},
          {"installed", installed.report.kernels_installed},
          {"present", installed.report.kernels_present},
          {"installed_bytes", installed.report.installed_bytes},
          {"bundle", installed.report.bundle_path},
          {"seconds", installed.seconds},
          {"manifests", std::move(manifests)}};
}

void print_installed(const InstalledBundle& installed) {
  const bundle::InstallReport& report = installed.report;
  std::printf("%zu kernels installed (%s bytes), %zu present, in %s; %.1f s\n",
              report.kernels_installed, with_commas(report.installed_bytes).c_str(),
              report.kernels_present, installed.store.c_str(), installed.seconds);
  if (!report.bundle_path.empty()) std::printf("bundle: %s\n", report.bundle_path.c_str());
  for (const bundle::InstalledManifest& manifest : report.manifests) {
    std::printf("manifest %s: %s%s\n", manifest.name.c_str(), manifest.path.c_str(),
                manifest.was_present ? " (present)" : "");
  }
}

ExitCode run_bundle_install(const BundleInstallArguments& arguments, const CommonOptions& common) {
  const auto installed = install(arguments, common);
  if (!installed) return report_error(common, installed.error());
  if (common.json) {
    print_json(installed_json(*installed));
    return ExitCode::kOk;
  }
  if (!common.quiet) print_installed(*installed);
  return ExitCode::kOk;
}

}  // namespace cubist::tools
