#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/environment.h"
#include "command.h"
#include "exit_code.h"
#include "flag_values.h"
#include "settings.h"
#include "standard_output.h"
#include "trust_options.h"
#include "usage_error.h"

namespace cubist::tools {
namespace {

constexpr const char* kFooter = R"(Exit codes:
  0 ok                      5 network
  1 internal fault          6 disk or permission
  2 usage                   7 missing while offline
  3 no kernel serves        8 manifest invalid
  4 integrity or signature  9 driver or GPU         130 interrupted (128 + signal)

Every command takes --json. Docs: README.md, manifests/FORMAT.md, docs/.)";

/// In the list of commands, only the first sentence of each; `cubist COMMAND --help` has the rest.
class CommandListFormatter : public CLI::Formatter {
 public:
  static constexpr int kNameWidth = 13;
  std::string make_subcommand(const CLI::App* command) const override {
    std::string text = command->get_description();
    text.resize(std::min(text.size(), text.find_first_of(".:;")));
    std::replace(text.begin(), text.end(), '\n', ' ');
    return fmt::format("  {:<{}}{}\n", command->get_name(), kNameWidth, text);
  }
};

/// For errors of the parser, before which it may not have come to the flag.
bool asks_for_json(int argc, char** argv) {
  return std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
}

/// --store stands for CUBIST_STORE in all that looks for a store: manifests that bundles installed
/// are found by name there, and so is what is remembered of serials.
void apply_store_flag(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const CLI::Option* store = command->get_option_no_throw("--store");
    if (store != nullptr && store->count() > 0 && !store->results().back().empty()) {
      set_environment("CUBIST_STORE", store->results().back(), "--store");
      set_store_of_trust(store->results().back());
    }
    apply_store_flag(*command);
  }
}

ExitCode run(int argc, char** argv) {
  CLI::App app{"Precompiled GPU kernels for inference runtimes: fetch, verify, select, launch."};
  app.require_subcommand(1);
  app.formatter(std::make_shared<CommandListFormatter>());
  app.set_version_flag("--version", "cubist " CUBIST_VERSION_STRING);
  app.footer(kFooter);
  // As shells and scripts expect: of a flag given twice the last one counts. Lists keep all.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

  CommonOptions common;
  ExitCode exit_code = ExitCode::kOk;
  const CommandContext context{app, common, exit_code};
  add_import_command(context);
  add_inspect_command(context);
  add_list_command(context);
  add_manifest_command(context);
  add_fetch_command(context);
  add_verify_command(context);
  add_status_command(context);
  add_gc_command(context);
  add_select_command(context);
  add_map_command(context);
  add_working_set_command(context);
  add_presets_command(context);
  add_launch_command(context);
  add_prepare_command(context);
  add_tune_command(context);
  add_doctor_command(context);
  add_bundle_command(context);
  add_push_command(context);
  add_pull_command(context);
  refuse_odd_values(app);

  // Before the command runs, and not for --help and --version.
  app.parse_complete_callback([&] {
    if (app.got_subcommand("doctor")) {
      apply_what_can_be_read();
    } else if (const Status applied = apply_configuration(); !applied) {
      exit_code = report_error(common, applied.error());
      throw CLI::Success();
    }
    apply_store_flag(app);
    const std::string& problem = applied_configuration().problem;
    if (!problem.empty() && !common.quiet) {
      std::fprintf(stderr, "cubist: warning: %s\n", problem.c_str());
    }
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with exit code 0.
    if (error.get_exit_code() == 0) return app.exit(error) == 0 ? exit_code : ExitCode::kUsage;
    common.json = asks_for_json(argc, argv);
    return report_error(common, Error(StatusCode::kInvalidArgument, usage_message(app, error)));
  }
  return exit_code;
}

}  // namespace
}  // namespace cubist::tools

int main(int argc, char** argv) {
  using namespace cubist::tools;
  ExitCode exit_code = ExitCode::kInternal;
  open_standard_streams();
  try {
    exit_code = run(argc, argv);
  } catch (const std::bad_alloc&) {
    CommonOptions common;  // there is room for it again
    common.json = asks_for_json(argc, argv);
    exit_code = report_error(
        common, cubist::Error(cubist::StatusCode::kOutOfMemory,
                              "out of memory; raise the limit (ulimit -v, the container's), or ask "
                              "for less at once"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cubist: internal error: %s\n", error.what());
  }
  return static_cast<int>(finish_output(exit_code));
}
