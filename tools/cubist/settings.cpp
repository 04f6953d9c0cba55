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
  CUBIST_ASSIGN_OR_RETURN(const config::Configuration configuration,
                          config::load_configuration(place));
  for (const auto& [name, value] : config::as_environment(configuration)) {
    if (std::getenv(name.c_str()) != nullptr) continue;
    ::setenv(name.c_str(), value.c_str(), 0);
    applied().variables.push_back(name);
  }
  return {};
}

const AppliedConfiguration& applied_configuration() { return applied(); }

}  // namespace cubist::tools
