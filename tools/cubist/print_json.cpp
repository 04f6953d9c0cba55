#include "print_json.h"

#include <nlohmann/json.hpp>

#include "base/secrets.h"
#include "command.h"

namespace cubist::tools {

void print_json(const nlohmann::ordered_json& document) {
  print(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

nlohmann::ordered_json error_json(const Error& error) {
  return {{"code", to_string(error.code())},
          {"exit_code", static_cast<int>(exit_code_for(error.code()))},
          {"message", without_credentials(error.message())}};
}

std::string error_json_text(const Error& error) {
  return error_json(error).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print_json(nlohmann::ordered_json document, const Status& outcome) {
  if (!outcome) document["error"] = error_json(outcome.error());
  print_json(document);
}

}  // namespace cubist::tools
