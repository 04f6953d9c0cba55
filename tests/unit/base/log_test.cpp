#include "base/log.h"

#include <string>
#include <vector>

#include "support/catch.h"

TEST_CASE("a log sink gets what is at or above the level") {
  std::vector<std::string> seen;
  cubist::set_log_sink([&](cubist::LogLevel, std::string_view text) { seen.emplace_back(text); });
  const auto before = cubist::log_level();
  cubist::set_log_level(cubist::LogLevel::kWarning);
  cubist::log(cubist::LogLevel::kInfo, "not {}", "this");
  cubist::log(cubist::LogLevel::kError, "but {}", "this");
  cubist::set_log_level(before);
  cubist::set_log_sink({});
  CHECK(seen == std::vector<std::string>{"but this"});
}
