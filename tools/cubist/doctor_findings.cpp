#include "doctor_findings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/environment.h"
#include "base/secrets.h"
#include "config/configuration.h"
#include "document/json_text.h"
#include "manifest_names.h"
#include "registry/environment_names.h"
#include "registry/source.h"
#include "registry/store.h"
#include "settings.h"
#include "trust_options.h"

extern char** environ;

namespace cubist::tools {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<Finding>;

constexpr const char* kPolicies = "allow, warn, refuse";

std::string how_to_change(const std::string& name) {
  const std::string origin = environment_origin(name);
  return origin == name ? fmt::format("correct {} or unset it", name)
                        : "correct that line or remove it (docs/configuration.md)";
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

constexpr const char* kSourceKinds =
    "http://, https://, oci://, pip:NAME==VERSION, a folder or a wheel";
constexpr const char* kKeyKinds = "minisign public keys (RW...), or .pub files";
constexpr const char* kSignedFiles = "files that a trusted key signed";

/// What a key of the configuration file takes.
std::string allowed_of(std::string_view pointer) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"/manifests", "folders: absolute or from ~/, without ':'"},
      {"/store", "a folder: absolute or from ~/, without ':'"},
      {"/base_stores", "folders: absolute or from ~/, without ':'"},
      {"/sources",
       "texts without white space: http://, https://, oci://, pip:NAME==VERSION, a "
       "folder or a wheel"},
      {"/trusted_keys", "minisign public keys (RW...), or .pub files"},
      {"/key_statements", "files that a trusted key signed: absolute or from ~/"},
      {"/revocations", "files that a trusted key signed: absolute or from ~/"},
      {"/manifest_signatures", "allow, warn, refuse"},
      {"/foreign_store", "allow, warn, refuse"},
  };
  const std::string_view key = pointer.substr(0, pointer.find('/', 1));
  for (const auto& [name, kind] : kKinds) {
    if (key == name) return std::string(kind);
  }
  return "";
}

/// What a complaint has in quotes, where that is its first word or what it "is".
std::string quoted_in(std::string_view problem) {
  if (problem.starts_with("is ")) problem.remove_prefix(3);
  const std::size_t end = problem.starts_with('\'') ? problem.find("'", 1) : std::string_view::npos;
  return std::string(end == std::string_view::npos ? "" : problem.substr(1, end - 1));
}

/// "FILE:LINE: /key: what is wrong"; whatever else is a problem with the file as a whole.
Finding of_complaint(const Error& complaint) {
  const std::string& file = applied_configuration().file;
  const std::string& message = complaint.message();
  Finding finding;
  finding.setting = file;
  finding.problem = message;
  finding.next_step = fmt::format("correct '{}' (docs/configuration.md)", file);
  if (!message.starts_with(file)) return finding;
  const std::size_t pointer = message.find(": ", file.size());
  const std::size_t text = pointer == std::string::npos ? pointer : message.find(": ", pointer + 2);
  if (text == std::string::npos || message.find_first_of("/(", pointer) != pointer + 2) {
    return finding;
  }
  finding.setting = message.substr(0, text);
  finding.problem = message.substr(text + 2);
  finding.found = quoted_in(finding.problem);
  finding.allowed = allowed_of(finding.setting.substr(pointer + 2));
  return finding;
}

void check_policy(const char* name, Findings& findings) {
  const std::string value = environment(name);
  if (value.empty() || trust::parse_policy(value)) return;
  findings.push_back(
      {true, environment_origin(name), value, "is no policy", kPolicies, how_to_change(name)});
  ::unsetenv(name);
}

void check_log_level(Findings& findings) {
  constexpr std::array<std::string_view, 6> kLevels = {"debug",   "info",  "warn",
                                                       "warning", "error", "off"};
  const std::string value = environment("CUBIST_LOG_LEVEL");
  if (value.empty() || std::find(kLevels.begin(), kLevels.end(), value) != kLevels.end()) return;
  findings.push_back({false, "CUBIST_LOG_LEVEL", value, "is no level, so warnings are shown",
                      "debug, info, warning, error, off", how_to_change("CUBIST_LOG_LEVEL")});
}

/// Each of a variable's folders.
void check_folders(const char* name, Findings& findings) {
  for (const std::string& folder : environment_list(name, ":")) {
    if (is_folder(folder)) continue;
    findings.push_back({false, environment_origin(name), folder,
                        "is no folder, so it is passed over",
                        "folders that exist, separated by ':'",
                        fmt::format("make it, or {}", how_to_change(name))});
  }
}

void check_presets(Findings& findings) {
  const std::string folder = environment("CUBIST_PRESETS");
  if (folder.empty() || is_folder(folder)) return;
  findings.push_back({true, "CUBIST_PRESETS", folder, "is no folder", "a folder of presets",
                      how_to_change("CUBIST_PRESETS")});
}

void check_sources(Findings& findings) {
  std::string good;
  for (const std::string& text : config::sources_from_environment()) {
    const auto source = parse_source(text);
    if (source) {
      good += (good.empty() ? "" : " ") + text;
    } else {
      findings.push_back({true, environment_origin("CUBIST_SOURCES"), shown_value(text),
                          source.error().message(), kSourceKinds, how_to_change("CUBIST_SOURCES")});
    }
  }
  if (!environment("CUBIST_SOURCES").empty()) ::setenv("CUBIST_SOURCES", good.c_str(), 1);
}

void check_tokens(Findings& findings) {
  for (const std::string& entry : environment_list("CUBIST_BEARER_TOKEN", ",")) {
    if (entry.find('=') != std::string::npos && entry.front() != '=') continue;
    findings.push_back({false, "CUBIST_BEARER_TOKEN", "", "an entry has no host, so it is not used",
                        "host=token, separated by ','", how_to_change("CUBIST_BEARER_TOKEN")});
  }
}

void check_names(Findings& findings) {
  for (const std::string& name : unknown_environment_names(environ)) {
    findings.push_back({false, name, "", "means nothing to this version", "",
                        "unset it, or correct its name (docs/configuration.md)"});
  }
}

/// Keys one by one, then statements, then lists, each with those before it that are good; what is
/// good is what trust() has from then on.
class TrustCheck {
 public:
  explicit TrustCheck(trust::Settings settings) : wanted_(std::move(settings)), good_(wanted_) {
    good_.trusted_keys.clear();
    good_.key_statements.clear();
    good_.revocations.clear();
  }

  trust::Settings run(Findings& findings) {
    const trust::Origins& origins = wanted_.origins;
    take("--trusted-key", origins.trusted_keys, &trust::Settings::trusted_keys, kKeyKinds,
         findings);
    take("", origins.key_statements, &trust::Settings::key_statements, kSignedFiles, findings);
    take("--revocations", origins.revocations, &trust::Settings::revocations, kSignedFiles,
         findings);
    return good_;
  }

 private:
  using List = std::vector<std::string> trust::Settings::*;

  std::optional<Error> try_one(List list, const std::string& one) {
    trust::Settings settings = good_;
    (settings.*list).push_back(one);
    const auto opened = trust::Trust::open(settings);
    if (opened) {
      good_ = std::move(settings);
      return std::nullopt;
    }
    return opened.error();
  }

  /// A statement may need one that stands behind it in the list, so the rest is tried again until
  /// none more is good.
  void take(std::string_view flag, const std::string& origin, List list, const char* allowed,
            Findings& findings) {
    std::vector<std::string> left = wanted_.*list;
    std::vector<std::pair<std::string, Error>> bad;
    for (bool progress = true; progress;) {
      progress = false;
      bad.clear();
      for (const std::string& one : left) {
        if (auto error = try_one(list, one)) {
          bad.emplace_back(one, std::move(*error));
        } else {
          progress = true;
        }
      }
      left.clear();
      for (const auto& [one, error] : bad) left.push_back(one);
      progress = progress && !left.empty();
    }
    for (const auto& [one, error] : bad) {
      std::string problem = error.message();
      if (problem.starts_with(origin + ": ")) problem.erase(0, origin.size() + 2);
      // A value that the problem does not show is a secret key.
      const bool is_shown = problem.find(one) != std::string::npos;
      findings.push_back({true, origin, is_shown ? shown_value(one) : "", problem, allowed,
                          origin == flag ? "correct the flag or leave it out"
                                         : "correct it or take it out of the list"});
    }
  }

  trust::Settings wanted_;
  trust::Settings good_;
};

void check_trust(Findings& findings) {
  const auto settings = trust_settings();
  if (!settings) {  // the store's place: check_store() tells
    return;
  }
  set_trust_settings(TrustCheck(*settings).run(findings));
}

void check_store(Findings& findings) {
  const auto options = store_options_from_environment();
  if (!options) {
    findings.push_back({true, "CUBIST_STORE", "", options.error().message(), "",
                        "set CUBIST_STORE or give --store"});
    return;
  }
  std::error_code error;
  if (fs::exists(options->root, error) && !is_folder(options->root)) {
    findings.push_back({true, environment_origin("CUBIST_STORE"), options->root, "is no folder",
                        "a folder, or a path where one can be made", "name another"});
  }
  const auto opened = Store::open();
  if (!opened && opened.error().code() == StatusCode::kUntrusted) {
    findings.push_back({true, environment_origin("CUBIST_STORE"), "", opened.error().message(), "",
                        "use a store that nobody else can write (docs/threat-model.md)"});
    ::setenv("CUBIST_FOREIGN_STORE", "warn", 1);
  }
}

void check_project(Findings& findings) {
  const auto names = manifest_names();
  if (names) return;
  const bool named = !environment("CUBIST_PROJECT").empty();
  findings.push_back({true, named ? "CUBIST_PROJECT" : "cubist.json", environment("CUBIST_PROJECT"),
                      names.error().message(), "",
                      "correct the file, or set CUBIST_PROJECT to another (empty: none)"});
  ::setenv("CUBIST_PROJECT", "", 1);
}

}  // namespace

Findings find_wrong_settings(const std::vector<Error>& complaints) {
  Findings findings;
  if (const AppliedConfiguration& applied = applied_configuration(); !applied.problem.empty()) {
    findings.push_back({false, applied.file, "", applied.problem, "", "make it readable"});
  }
  for (const Error& complaint : complaints) findings.push_back(of_complaint(complaint));
  check_names(findings);
  check_log_level(findings);
  check_policy("CUBIST_MANIFEST_SIGNATURES", findings);
  check_policy("CUBIST_FOREIGN_STORE", findings);
  check_store(findings);
  check_folders("CUBIST_STORE_BASE", findings);
  check_folders("CUBIST_MANIFESTS", findings);
  check_presets(findings);
  check_sources(findings);
  check_tokens(findings);
  check_trust(findings);
  check_project(findings);
  return findings;
}

std::string to_text(const Finding& finding) {
  std::string text = finding.setting + ": ";
  const bool says_itself = finding.problem.find(in_quotes(finding.found)) != std::string::npos;
  if (!finding.found.empty() && !says_itself)
    text += fmt::format("found {}, which ", in_quotes(finding.found));
  text += finding.problem;
  if (!finding.allowed.empty()) text += "; allowed: " + finding.allowed;
  return text + "; next: " + finding.next_step;
}

}  // namespace cubist::tools
