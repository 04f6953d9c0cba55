#include "command.h"

#include "base/secrets.h"
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
  if (common.json) print_json(nlohmann::ordered_json::object(), tl::unexpected<Error>(error));
  return print_error(error);
}

ExitCode print_error(const Error& error) {
  std::fprintf(stderr, "cubist: error: %s\n", without_credentials(error.message()).c_str());
  return exit_code_for(error.code());
}

ExitCode print_outcome(const Status& outcome) {
  return outcome ? ExitCode::kOk : print_error(outcome.error());
}

}  // namespace cubist::tools
