#include "settings.h"

#include <cstdlib>

#include "base/environment.h"
#include "config/configuration.h"

namespace cubist::tools {
namespace {

AppliedConfiguration& applied() {
  static AppliedConfiguration configuration;
  return configuration;
}

std::string going_on_without(const Error& error) {
  return fmt::format("{}; going on without it (CUBIST_CONFIG names another file, empty: none)",
                     error.message());
}

void apply(const config::Configuration& configuration) {
  for (const config::EnvironmentValue& one : config::as_environment(configuration)) {
    if (std::getenv(one.name.c_str()) != nullptr) continue;
    set_environment(one.name, one.value, one.origin);
    applied().variables.push_back(one.name);
  }
}

}  // namespace

Status apply_configuration() {
  const config::ConfigurationPath place = config::configuration_path();
  applied().file = place.path;
  const auto configuration = config::load_configuration(place);
  if (!configuration && !place.required && configuration.error().code() == StatusCode::kIo) {
    applied().problem = going_on_without(configuration.error());
    return {};
  }
  if (!configuration) return tl::unexpected<Error>(Error(configuration.error()));
  apply(*configuration);
  return {};
}

void apply_what_can_be_read() {
  const config::ConfigurationPath place = config::configuration_path();
  applied().file = place.path;
  auto read = config::load_all_of_configuration(place);
  if (!read && !place.required && read.error().code() == StatusCode::kIo) {
    applied().problem = going_on_without(read.error());
    return;
  }
  if (!read) {
    applied().complaints = {std::move(read.error())};
    return;
  }
  apply(read->configuration);
  applied().complaints = std::move(read->complaints);
}

const AppliedConfiguration& applied_configuration() { return applied(); }

}  // namespace cubist::tools
