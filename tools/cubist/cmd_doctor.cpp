#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <fmt/ranges.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "doctor_report.h"
#include "print_json.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDoctorHelp =
    R"(Shows what there is on this machine: version, CUDA driver and GPUs, the store, the
manifests that are found by name, pip. Changes nothing, asks no server, and prints neither
credentials nor names of servers, so that the output can be pasted into a report.

Settings that are wrong, of the configuration file, the environment and the flags, are listed
at the end, each with what was found, what is allowed and what to do; the report goes on without
them, and the exit code is 2. A driver that is missing is no error here: everything but launch
works without it.

Examples:
  cubist doctor
  cubist doctor --json)";

template <class... Args>
void line(std::string_view label, fmt::format_string<Args...> text, Args&&... args) {
  std::puts(fmt::format("{:<10}{}", label, fmt::format(text, std::forward<Args>(args)...)).c_str());
}

std::string in_mib(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_driver(const DoctorReport::Driver& driver) {
  if (driver.library.empty()) {
    line("driver", "none: {}", driver.problem);
    return;
  }
  line("driver", "{}, CUDA {}", driver.library, driver.cuda_version);
  if (!driver.devices_problem.empty()) line("gpu", "none: {}", driver.devices_problem);
  for (std::size_t i = 0; i < driver.devices.size(); ++i) {
    const DeviceProfile& device = driver.devices[i];
    line("gpu", "{}: {}, sm_{}, {} SMs, {} bytes of shared memory a block", i, device.name,
         device.sm, device.num_sms, device.max_smem_optin);
  }
}

void print_store(const DoctorReport::StoreState& store) {
  if (!store.problem.empty()) {
    line("store", "none: {}", store.problem);
    return;
  }
  const char* state = !store.exists
                          ? (store.writable ? "not there yet" : "not there, CANNOT be made")
                          : (store.writable ? "writable" : "READ-ONLY");
  line("store", "{} ({}): {} entries, {}{}", store.root, state, store.entries,
       in_mib(store.entry_bytes),
       store.free_bytes ? fmt::format(", {} free", in_mib(*store.free_bytes)) : "");
  if (store.bundles > 0) {
    line("", "{} kernels in {} bundle(s), {}", store.bundled_kernels, store.bundles,
         in_mib(store.bundle_bytes));
  }
  if (store.unfinished_files > 0) {
    line("", "{} unfinished file(s) in tmp/; the next fetch removes what nobody writes",
         store.unfinished_files);
  }
  for (const std::string& layer : store.base_layers) line("", "below it, read-only: {}", layer);
}

void print_trust(const DoctorReport::TrustState& trust) {
  if (!trust.problem.empty()) {
    line("trust", "INVALID: {}", trust.problem);
    return;
  }
  if (trust.keys.empty() && !trust.retired.empty()) {
    line("trust", "no key is trusted any more, so what is signed is refused; unsigned: {}",
         trust.manifest_signatures);
  } else if (trust.keys.empty()) {
    line("trust", "no key is trusted: signatures are not checked; unsigned manifests: {}",
         trust.manifest_signatures);
  } else {
    line("trust", "keys {}; unsigned manifests: {}; {} key statement(s)",
         fmt::join(trust.keys, ", "), trust.manifest_signatures, trust.key_statements);
  }
  if (!trust.retired.empty()) line("", "{}", trust.retired);
  line("", "stores that others can write: {}", trust.foreign_store);
  for (const trust::RevocationList& list : trust.lists) {
    line("revoked", "{} kernel(s) by {}, serial {}{}", list.entries.size(), list.file, list.serial,
         list.expires.empty() ? "" : ", expires " + list.expires);
  }
}

/// "shipped", "signed by KEY" or "unsigned".
std::string voucher(const DoctorReport::ManifestState& manifest) {
  if (!manifest.signed_by.empty()) return "signed by " + manifest.signed_by;
  return manifest.shipped ? "shipped" : "unsigned";
}

void print_report(const DoctorReport& report) {
  line("cubist", "{} (compiler {})", report.version, report.compiler);
  line("system", "{}", report.system);
  print_driver(report.driver);
  print_store(report.store);
  print_trust(report.trust);
  if (report.manifests.empty()) line("manifests", "none found; set CUBIST_MANIFESTS");
  for (const DoctorReport::ManifestState& manifest : report.manifests) {
    if (manifest.problem.empty()) {
      line("manifest", "{}: {} kernels for {}, {} ({})", manifest.name, manifest.kernels,
           fmt::join(manifest.architectures, ", "), voucher(manifest), manifest.path);
    } else {
      line("manifest", "{}: INVALID: {}", manifest.name, manifest.problem);
    }
  }
  if (report.pip.found) {
    line("pip", "found, {} package index(es) configured", report.pip.indexes);
  } else {
    line("pip", "none: {}", report.pip.problem);
  }
  line("settings", "{} from {}",
       report.configured.empty() ? "none" : fmt::to_string(fmt::join(report.configured, ", ")),
       report.configuration_file.empty() ? "no file" : report.configuration_file);
  for (const auto& [name, value] : report.environment) line("variable", "{}={}", name, value);
  for (const Finding& finding : report.findings) {
    line(finding.is_error ? "ERROR" : "WARNING", "{}", to_text(finding));
  }
}

Json driver_json(const DoctorReport::Driver& driver) {
  Json devices = Json::array();
  for (const DeviceProfile& device : driver.devices) {
    devices.push_back({{"name", device.name},
                       {"sm", device.sm},
                       {"num_sms", device.num_sms},
                       {"max_smem_optin", device.max_smem_optin}});
  }
  Json json = {{"found", !driver.library.empty()},
               {"library", driver.library},
               {"cuda_version", driver.cuda_version},
               {"devices", std::move(devices)}};
  if (!driver.problem.empty()) json["problem"] = driver.problem;
  if (!driver.devices_problem.empty()) json["problem"] = driver.devices_problem;
  return json;
}

Json store_json(const DoctorReport::StoreState& store) {
  Json json = {{"root", store.root},
               {"base_layers", store.base_layers},
               {"exists", store.exists},
               {"writable", store.writable},
               {"entries", store.entries},
               {"entry_bytes", store.entry_bytes},
               {"bundles", store.bundles},
               {"bundled_kernels", store.bundled_kernels},
               {"bundle_bytes", store.bundle_bytes},
               {"unfinished_files", store.unfinished_files}};
  if (store.free_bytes) json["free_bytes"] = *store.free_bytes;
  if (!store.problem.empty()) json["problem"] = store.problem;
  return json;
}

Json trust_json(const DoctorReport::TrustState& trust) {
  Json lists = Json::array();
  for (const trust::RevocationList& list : trust.lists) {
    lists.push_back({{"file", list.file},
                     {"name", list.name},
                     {"serial", list.serial},
                     {"expires", list.expires},
                     {"kernels", list.entries.size()}});
  }
  Json json = {{"keys", trust.keys},
               {"manifest_signatures", trust.manifest_signatures},
               {"foreign_store", trust.foreign_store},
               {"key_statements", trust.key_statements},
               {"revocations", std::move(lists)},
               {"revoked_kernels", trust.revoked_kernels}};
  if (!trust.retired.empty()) json["retired"] = trust.retired;
  if (!trust.problem.empty()) json["problem"] = trust.problem;
  return json;
}

Json report_json(const DoctorReport& report) {
  Json manifests = Json::array();
  for (const DoctorReport::ManifestState& manifest : report.manifests) {
    Json json = {{"name", manifest.name},       {"path", manifest.path},
                 {"kernels", manifest.kernels}, {"architectures", manifest.architectures},
                 {"shipped", manifest.shipped}, {"signed_by", manifest.signed_by}};
    if (!manifest.problem.empty()) json["problem"] = manifest.problem;
    manifests.push_back(std::move(json));
  }
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"severity", finding.is_error ? "error" : "warning"},
                        {"setting", finding.setting},
                        {"found", finding.found},
                        {"problem", finding.problem},
                        {"allowed", finding.allowed},
                        {"next_step", finding.next_step}});
  }
  Json pip = {{"found", report.pip.found}, {"indexes", report.pip.indexes}};
  if (!report.pip.problem.empty()) pip["problem"] = report.pip.problem;
  Json environment = Json::object();
  for (const auto& [name, value] : report.environment) environment[name] = value;
  return {{"version", report.version},
          {"compiler", report.compiler},
          {"system", report.system},
          {"driver", driver_json(report.driver)},
          {"store", store_json(report.store)},
          {"trust", trust_json(report.trust)},
          {"manifests", std::move(manifests)},
          {"configuration", {{"file", report.configuration_file}, {"sets", report.configured}}},
          {"pip", std::move(pip)},
          {"environment", std::move(environment)},
          {"findings", std::move(findings)}};
}

/// Nothing where every setting is one that the other commands take.
std::optional<Error> error_of(const DoctorReport& report) {
  const auto wrong = std::count_if(report.findings.begin(), report.findings.end(),
                                   [](const Finding& finding) { return finding.is_error; });
  if (wrong == 0) return std::nullopt;
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{} setting(s) are wrong, and other commands refuse them; the report "
                           "names each, and is without them otherwise",
                           wrong));
}

}  // namespace

void add_doctor_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("doctor", kDoctorHelp);
  const auto store = std::make_shared<std::string>();
  command->add_option("--store", *store, "Folder of the store");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, store] {
    const DoctorReport report = make_doctor_report(*store);
    const std::optional<Error> error = error_of(report);
    if (context.common.json) {
      Json json = report_json(report);
      if (error) json["error"] = error_json(*error);
      print_json(json);
    } else {
      print_report(report);
    }
    context.exit_code = ExitCode::kOk;
    if (error) context.exit_code = print_error(*error);
  });
}

}  // namespace cubist::tools
