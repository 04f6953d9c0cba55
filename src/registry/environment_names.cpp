#include "registry/environment_names.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "base/log.h"

extern char** environ;

namespace cubist {
namespace {

constexpr std::array<std::string_view, 16> kKnown = {
    "CUBIST_BEARER_TOKEN", "CUBIST_CONFIG",    "CUBIST_FOREIGN_STORE", "CUBIST_KEY_STATEMENTS",
    "CUBIST_LIBCUDA",      "CUBIST_LOG_LEVEL", "CUBIST_MANIFESTS",     "CUBIST_MANIFEST_SIGNATURES",
    "CUBIST_PRESETS",      "CUBIST_PROJECT",   "CUBIST_PYTHON",        "CUBIST_REVOCATIONS",
    "CUBIST_SOURCES",      "CUBIST_STORE",     "CUBIST_STORE_BASE",    "CUBIST_TRUSTED_KEYS",
};

}  // namespace

std::vector<std::string> unknown_environment_names(const char* const* environment) {
  std::vector<std::string> unknown;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view line(*environment);
    const std::string_view name = line.substr(0, line.find('='));
    if (!name.starts_with("CUBIST_") || name.starts_with("CUBIST_TEST_") ||
        name.starts_with("CUBIST_FAKE_")) {
      continue;
    }
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) unknown.emplace_back(name);
  }
  return unknown;
}

void warn_about_unknown_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const std::string& name : unknown_environment_names(environ)) {
      log(LogLevel::kWarning,
          "the environment variable {} means nothing to this version; known are {}", name,
          fmt::join(kKnown, ", "));
    }
  });
}

}  // namespace cubist
