#include "print_json.h"

#include <nlohmann/json.hpp>

#include "command.h"

namespace cubist::tools {

void print_json(const nlohmann::ordered_json& document) {
  print(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace cubist::tools
