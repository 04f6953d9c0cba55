#include "settings.h"

#include <cstdlib>

#include "config/configuration.h"

namespace cubist::tools {
namespace {

AppliedConfiguration& applied() {
  static AppliedConfiguration configuration;
  return configuration;
}

}  // namespace

Status apply_configuration() {
  const config::ConfigurationPath place = config::configuration_path();
  applied().file = place.path;
  const auto configuration = config::load_configuration(place);
  if (!configuration && !place.required && configuration.error().code() == StatusCode::kIo) {
    applied().problem =
        fmt::format("{}; going on without it (CUBIST_CONFIG names another file, empty: none)",
                    configuration.error().message());
    return {};
  }
  if (!configuration) return tl::unexpected<Error>(Error(configuration.error()));
  for (const auto& [name, value] : config::as_environment(*configuration)) {
    if (std::getenv(name.c_str()) != nullptr) continue;
    ::setenv(name.c_str(), value.c_str(), 0);
    applied().variables.push_back(name);
  }
  return {};
}

const AppliedConfiguration& applied_configuration() { return applied(); }

}  // namespace cubist::tools
