#include "support/tool_json.h"

#include <nlohmann/json.hpp>

#include "support/catch.h"

namespace cubist::test {

nlohmann::json json_of(const ToolRun& run) {
  CAPTURE(run.out, run.err);
  auto document = nlohmann::json::parse(run.out, nullptr, false);
  REQUIRE_FALSE(document.is_discarded());
  return document;
}

}  // namespace cubist::test
