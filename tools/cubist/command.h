#pragma once

#include <string>
#include <string_view>

#include <CLI/App.hpp>

#include "base/result.h"
#include "exit_code.h"

namespace cubist::tools {

/// Options every command shares, filled before a command's callback runs.
struct CommonOptions {
  bool json = false;   ///< one JSON document on standard output, nothing else there
  bool quiet = false;  ///< no progress, no hints
};

/// Each cmd_*.cpp adds its subcommand with one such function. The callback runs the command and
/// puts what the process shall end with into `exit_code`; it lets no exception out.
struct CommandContext {
  CLI::App& app;
  CommonOptions& common;
  ExitCode& exit_code;
};

void add_import_command(CommandContext context);
void add_inspect_command(CommandContext context);
void add_list_command(CommandContext context);
void add_manifest_command(CommandContext context);
void add_fetch_command(CommandContext context);
void add_verify_command(CommandContext context);
void add_status_command(CommandContext context);
void add_gc_command(CommandContext context);
void add_select_command(CommandContext context);
void add_map_command(CommandContext context);
void add_working_set_command(CommandContext context);
void add_presets_command(CommandContext context);
void add_launch_command(CommandContext context);
void add_prepare_command(CommandContext context);
void add_doctor_command(CommandContext context);
void add_bundle_command(CommandContext context);
void add_push_command(CommandContext context);
void add_pull_command(CommandContext context);
void add_tune_command(CommandContext context);

/// --json and --quiet on a subcommand.
void add_common_options(CLI::App& command, CommonOptions& common);

/// Writes to standard output, as it is.
void print(std::string_view text);

/// Prints the error ("cubist: error: ..." on standard error, and with --json the document
/// {"error": {code, exit_code, message}}) and gives the exit code that belongs to it.
ExitCode report_error(const CommonOptions& common, const Error& error);
/// The same without a document: it is out already, with the error in it.
ExitCode print_error(const Error& error);
/// That, if it failed.
ExitCode print_outcome(const Status& outcome);

}  // namespace cubist::tools
