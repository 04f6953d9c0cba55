#include "doctor_report.h"

#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/environment.h"
#include "base/secrets.h"
#include "driver/device_query.h"
#include "manifest_names.h"
#include "model/cuda_version.h"
#include "registry/environment_names.h"
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

/// Whether a value could be more than a path or a word: a URL, somebody's name and password, a
/// secret key in the place of a public one.
bool may_hold_secrets(const std::string& name, const std::string& value) {
  constexpr std::size_t kPublicKeyLength = 56;
  if (name.find("TOKEN") != std::string::npos) return true;
  if (value.find_first_of("@?") != std::string::npos || value.find("://") != std::string::npos) {
    return true;
  }
  if (name != "CUBIST_TRUSTED_KEYS") return false;
  const auto keys = environment_list(name.c_str(), kWhiteSpace);
  return std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
    return key.size() > kPublicKeyLength && !key.ends_with(".pub");
  });
}

/// What the environment has, without what flags and the configuration file put there.
std::vector<std::pair<std::string, std::string>> look_at_environment() {
  const std::vector<std::string> unknown = unknown_environment_names(environ);
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("CUBIST_")) continue;
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string name(text.substr(0, equals));
    if (is_in(applied_configuration().variables, name) || environment_origin(name) != name) {
      continue;
    }
    std::string value(text.substr(std::min(equals + 1, text.size())));
    // Nobody knows what a variable that is not ours holds.
    if (is_in(unknown, name) || may_hold_secrets(name, value)) value = "(set)";
    found.emplace_back(name, std::move(value));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Values of ours that may hold secrets, and the parts of lists, longest first.
std::vector<std::string> secret_values() {
  std::vector<std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with("CUBIST_") || equals == std::string_view::npos) continue;
    const std::string name(text.substr(0, equals));
    std::string value(text.substr(equals + 1));
    if (value.empty() || !may_hold_secrets(name, value)) continue;
    for (std::string& part : environment_list(name.c_str(), " \t\r\n\v\f:,")) {
      if (part.find_first_of("@?=") != std::string::npos) values.push_back(std::move(part));
    }
    values.push_back(std::move(value));
  }
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return values;
}

/// Whatever got into the texts: the report names no server.
void hide_servers(const std::vector<std::string>& secrets, DoctorReport& report) {
  const auto hide = [&](std::string& text) {
    text = without_servers(text);
    for (const std::string& secret : secrets) {
      for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 3) {
        text.replace(at, secret.size(), "...");
      }
    }
  };
  for (Finding& finding : report.findings) {
    hide(finding.setting);
    hide(finding.found);
    hide(finding.problem);
    hide(finding.next_step);
  }
  for (DoctorReport::ManifestState& manifest : report.manifests) {
    hide(manifest.path);
    hide(manifest.problem);
  }
  for (std::string& layer : report.store.base_layers) hide(layer);
  for (std::string* text :
       {&report.store.root, &report.store.problem, &report.trust.problem, &report.trust.retired,
        &report.pip.problem, &report.driver.library, &report.driver.problem,
        &report.driver.devices_problem, &report.configuration_file}) {
    hide(*text);
  }
}

/// What a variable names and cannot be used: the commands that need it say so, the others work.
void add_broken_tool(const char* name, const std::string& problem, std::vector<Finding>& findings) {
  if (environment(name).empty() || problem.empty()) return;
  findings.push_back({false, name, shown_value(environment(name)), "cannot be used: " + problem, "",
                      fmt::format("correct {} or unset it", name)});
}

std::string system_text() {
  utsname system{};
  if (::uname(&system) != 0) return "unknown";
  return fmt::format("{} {} {}", system.sysname, system.release, system.machine);
}

}  // namespace

DoctorReport make_doctor_report(const std::string& store_override) {
  const std::vector<std::string> secrets = secret_values();  // before what is wrong is unset
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
  hide_servers(secrets, report);
  return report;
}

}  // namespace cubist::tools
