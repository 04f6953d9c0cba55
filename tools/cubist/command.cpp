#include "command.h"
#include "print_json.h"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace cubist::tools {

void add_common_options(CLI::App& command, CommonOptions& common) {
  command.add_flag("--json", common.json, "Print one JSON document on standard output");
  command.add_flag("-q,--quiet", common.quiet, "No progress display and no hints");
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

ExitCode report_error(const CommonOptions& common, const Error& error) {
  const ExitCode exit_code = exit_code_for(error.code());
  if (common.json) {
    const nlohmann::ordered_json document = {{"error",
                                              {{"code", to_string(error.code())},
                                               {"exit_code", static_cast<int>(exit_code)},
                                               {"message", error.message()}}}};
    print_json(document);
  }
  std::fprintf(stderr, "cubist: error: %s\n", error.message().c_str());
  return exit_code;
}

}  // namespace cubist::tools
