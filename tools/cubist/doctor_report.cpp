#include "doctor_report.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/environment.h"
#include "driver/device_query.h"
#include "manifest_names.h"
#include "model/cuda_version.h"
#include "registry/pip_settings.h"
#include "registry/store_status.h"
#include "settings.h"
#include "trust_options.h"

extern char** environ;

namespace cubist::tools {
namespace {

namespace fs = std::filesystem;

DoctorReport::Driver look_at_driver() {
  DoctorReport::Driver report;
  auto driver = driver::Driver::open();
  if (!driver) {
    report.problem = driver.error().message();
    return report;
  }
  report.library = (*driver)->table().library;
  report.cuda_version = cuda_version_text((*driver)->table().driver_version);
  auto devices = driver::query_devices(**driver);
  if (devices) {
    report.devices = *std::move(devices);
  } else {
    report.devices_problem = devices.error().message();
  }
  return report;
}

/// The folder itself, or the nearest one above it that exists.
fs::path nearest_existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.parent_path()) {
    path = path.parent_path();
  }
  return path;
}

void count_entries(const Store& store, DoctorReport::StoreState& state) {
  const LayerStatus layer = layer_status(Store({store.root(), {}})).front();
  state.entries = layer.entries;
  state.entry_bytes = layer.bytes;
  state.bundles = layer.bundles;
  state.bundled_kernels = layer.bundled_kernels;
  state.bundle_bytes = layer.bundle_bytes;
  state.unfinished_files = layer.unfinished;
  if (layer.error) state.problem = layer.error->message();
}

DoctorReport::StoreState look_at_store(const std::string& store_override) {
  DoctorReport::StoreState state;
  const auto store = Store::open(store_override);
  if (!store) {
    state.problem = store.error().message();
    return state;
  }
  state.root = store->root();
  const std::vector<std::string> layers = store->layers();
  state.base_layers.assign(layers.begin() + 1, layers.end());
  std::error_code error;
  state.exists = fs::is_directory(state.root, error);
  const fs::path nearest = nearest_existing(state.root);
  state.writable = ::access(nearest.c_str(), W_OK | X_OK) == 0;
  struct statvfs space {};
  if (::statvfs(nearest.c_str(), &space) == 0) {
    state.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  }
  if (state.exists) count_entries(*store, state);
  return state;
}

DoctorReport::ManifestState look_at_manifest(const std::string& name) {
  DoctorReport::ManifestState state;
  state.name = name;
  const auto named = find_manifest(name);
  if (!named) {
    state.problem = named.error().message();
    return state;
  }
  state.path = named->path;
  const auto opened = open_trusted_manifest(*named);
  if (!opened) {
    state.problem = opened.error().message();
    return state;
  }
  state.shipped = opened->shipped;
  if (opened->signed_by) state.signed_by = opened->signed_by->key.id.text();
  for (const Pack& pack : opened->manifest.packs) {
    state.kernels += pack.kernels.size();
    for (const KernelRecord& record : pack.kernels) {
      const std::string arch = to_string(record.traits.arch);
      auto& known = state.architectures;
      if (std::find(known.begin(), known.end(), arch) == known.end()) known.push_back(arch);
    }
  }
  std::sort(state.architectures.begin(), state.architectures.end());
  return state;
}

DoctorReport::TrustState look_at_trust() {
  DoctorReport::TrustState state;
  const auto opened = trust_of_user();
  if (!opened) {
    state.problem = opened.error().message();
    return state;
  }
  const trust::Trust& trust = **opened;
  for (const trust::PublicKey& key : trust.keys()) state.keys.push_back(key.id.text());
  state.retired = trust.retired_text();
  state.manifest_signatures = to_string(trust.manifest_signatures());
  state.foreign_store = to_string(trust.settings().foreign_store);
  state.key_statements = trust.settings().key_statements.size();
  state.lists = trust.revocation_lists();
  state.revoked_kernels = trust.revoked().size();
  return state;
}

DoctorReport::Pip look_at_pip() {
  DoctorReport::Pip pip;
  const auto settings = ask_pip();
  if (settings) {
    pip.found = true;
    pip.indexes = settings->index_urls.size();
  } else {
    pip.problem = settings.error().message();
  }
  return pip;
}

std::vector<std::pair<std::string, std::string>> look_at_environment() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("CUBIST_")) continue;
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string name(text.substr(0, equals));
    const auto& configured = applied_configuration().variables;
    if (std::find(configured.begin(), configured.end(), name) != configured.end()) continue;
    const bool secret = name.find("TOKEN") != std::string::npos;
    found.emplace_back(name, secret ? "(set)" : text.substr(std::min(equals + 1, text.size())));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// What a variable names and cannot be used: the commands that need it say so, the others work.
void add_broken_tool(const char* name, const std::string& problem, std::vector<Finding>& findings) {
  if (environment(name).empty() || problem.empty()) return;
  findings.push_back({false, name, environment(name), "cannot be used: " + problem, "",
                      fmt::format("correct {} or unset it", name)});
}

std::string system_text() {
  utsname system{};
  if (::uname(&system) != 0) return "unknown";
  return fmt::format("{} {} {}", system.sysname, system.release, system.machine);
}

}  // namespace

DoctorReport make_doctor_report(const std::string& store_override) {
  DoctorReport report;
  report.version = CUBIST_VERSION_STRING;
  report.compiler = __VERSION__;
  report.system = system_text();
  report.environment = look_at_environment();
  report.configuration_file = applied_configuration().file;
  report.configured = applied_configuration().variables;
  note_no_serials();
  report.findings = find_wrong_settings(applied_configuration().complaints);
  report.driver = look_at_driver();
  add_broken_tool("CUBIST_LIBCUDA", report.driver.problem, report.findings);
  report.store = look_at_store(store_override);
  report.trust = look_at_trust();
  if (const auto names = manifest_names(); names) {
    for (const std::string& name : *names) report.manifests.push_back(look_at_manifest(name));
  }
  report.pip = look_at_pip();
  add_broken_tool("CUBIST_PYTHON", report.pip.problem, report.findings);
  return report;
}

}  // namespace cubist::tools
