#include "registry/pip_settings.h"

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "registry/subprocess.h"
#include "registry/url.h"

namespace cubist {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kPipTimeout{60};
constexpr int kExitNoPip = 3;

// First pip's own parser of options, which has files, environment and defaults behind it. Where a
// pip has moved that, its documented commands say the same: `config list` and the default in
// `--help`.
constexpr const char* kQuestion = R"py(
import ast, json, re, subprocess, sys
try:
    import pip
except ImportError:
    sys.exit(3)
NAMES = {"index_url": "", "extra_index_urls": [], "find_links": [], "cert": "", "client_cert": "",
         "proxy": "", "trusted_hosts": [], "no_index": False}
def from_parser():
    from pip._internal.commands import create_command
    options, _ = create_command("install").parse_args([])
    return {name: getattr(options, name) or default for name, default in NAMES.items()}
def from_commands():
    def ask(*words):
        return subprocess.run([sys.executable, "-m", "pip", *words], check=True,
                              capture_output=True, text=True).stdout
    found = dict(NAMES)
    default = re.search(r"default\s+(https?://[^\s)]+)\)", ask("install", "--help"))
    found["index_url"] = default.group(1) if default else ""
    keys = {"extra-index-url": "extra_index_urls", "trusted-host": "trusted_hosts"}
    lines = ask("config", "list").splitlines()
    for section in ("global.", "install.", ":env:."):
        for line in lines:
            key, _, value = line.partition("=")
            if not key.startswith(section):
                continue
            name = key[len(section):]
            name = keys.get(name, name.replace("-", "_"))
            if name in found:
                value = ast.literal_eval(value)
                if name == "no_index":
                    found[name] = value.lower() in ("1", "true", "yes", "on")
                else:
                    found[name] = value.split() if isinstance(NAMES[name], list) else value
    return found
try:
    answer = from_parser()
except Exception:
    answer = from_commands()
print(json.dumps(answer))
)py";

std::string text_field(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> list_field(const Json& answer, const char* name) {
  std::vector<std::string> list;
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_array()) return list;
  for (const Json& one : *found) {
    if (one.is_string()) list.push_back(one.get<std::string>());
  }
  return list;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "no message";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
}

}  // namespace

Result<PipSettings> parse_pip_settings(const std::string& json_text) {
  const Json answer = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return fail(StatusCode::kIo, "pip's answer about its configuration is no JSON object");
  }
  PipSettings settings;
  const auto no_index = answer.find("no_index");
  if (no_index == answer.end() || *no_index != true) {
    if (std::string url = text_field(answer, "index_url"); !url.empty()) {
      settings.index_urls.push_back(std::move(url));
    }
    for (std::string& url : list_field(answer, "extra_index_urls")) {
      settings.index_urls.push_back(std::move(url));
    }
  }
  settings.find_links = list_field(answer, "find_links");
  settings.cert = text_field(answer, "cert");
  settings.client_cert = text_field(answer, "client_cert");
  settings.proxy = text_field(answer, "proxy");
  settings.trusted_hosts = list_field(answer, "trusted_hosts");
  return settings;
}

Result<PipSettings> ask_pip() {
  const char* chosen = std::getenv("CUBIST_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  auto ran = run_process({python, "-c", kQuestion}, kPipTimeout);
  if (!ran && ran.error().code() == StatusCode::kNotFound) {
    return fail(
        StatusCode::kNotFound,
        "cannot run '{}', which is asked for pip's configuration; install python3 with pip, "
        "name another with CUBIST_PYTHON, or give the wheel itself (--source FILE or URL)",
        python);
  }
  if (!ran) return forward_error(ran, "asking pip for its configuration");
  if (ran->exit_code == kExitNoPip) {
    return fail(
        StatusCode::kNotFound,
        "'{}' has no pip, which knows the package index; install it (Debian: python3-pip), "
        "name another python with CUBIST_PYTHON, or give the wheel itself (--source FILE or "
        "URL)",
        python);
  }
  if (ran->exit_code != 0) {
    return fail(StatusCode::kIo,
                "'{}' could not say what pip is configured to use (exit code {}): {}", python,
                ran->exit_code, without_credentials(last_line(ran->err)));
  }
  return parse_pip_settings(ran->out);
}

std::shared_ptr<const HttpProfile> profile_for_pip(const PipSettings& settings,
                                                   const HttpProfile& base) {
  auto profile = std::make_shared<HttpProfile>(base);
  if (!settings.cert.empty()) {
    profile->ca_file = settings.cert;
    profile->ca_folder.clear();
  }
  if (!settings.client_cert.empty()) profile->client_cert = settings.client_cert;
  if (!settings.proxy.empty()) profile->proxy = settings.proxy;
  profile->trusted_hosts = settings.trusted_hosts;
  return profile;
}

}  // namespace cubist
