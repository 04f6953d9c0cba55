#pragma once

#include <nlohmann/json_fwd.hpp>

#include "support/tool.h"

namespace cubist::test {

/// What a run printed, which has to be one JSON document.
nlohmann::json json_of(const ToolRun& run);

}  // namespace cubist::test
