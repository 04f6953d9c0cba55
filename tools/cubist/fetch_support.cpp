#include "fetch_support.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/environment.h"
#include "config/configuration.h"
#include "oci/source.h"
#include "registry/source.h"

namespace cubist::tools {
namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000.0));
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

}  // namespace

void add_connection_options(CLI::App& command, ConnectionArguments& arguments) {
  constexpr double kMostSeconds = 24 * 3600;
  command.add_option("--parallel", arguments.parallel, "Connections at once (default 8)")
      ->check(CLI::Range(1, 64));
  command
      .add_option("--connect-timeout", arguments.connect_timeout_s,
                  "Seconds until a connection must stand (default 15)")
      ->check(CLI::Range(0.01, kMostSeconds));
  command
      .add_option("--stall-timeout", arguments.stall_timeout_s,
                  "Seconds without data after which a transfer is begun anew (default 30)")
      ->check(CLI::Range(0.01, kMostSeconds));
  command.add_option("--tries", arguments.tries, "Tries for each request (default 4)")
      ->check(CLI::Range(1, 100));
  CLI::Option* plain =
      command.add_flag("--plain-http", arguments.plain_http,
                       "Talk to OCI registries by http; without it, that is done on this machine "
                       "alone (localhost). Passwords are never sent so to another machine");
  command.add_flag("--tls", arguments.tls, "Talk https to an OCI registry on this machine too")
      ->excludes(plain);
}

std::shared_ptr<const HttpProfile> http_profile(const ConnectionArguments& arguments) {
  auto profile = std::make_shared<HttpProfile>(http_profile_from_environment());
  profile->connect_timeout = milliseconds_of(arguments.connect_timeout_s);
  profile->stall_timeout = milliseconds_of(arguments.stall_timeout_s);
  profile->retry.max_tries = arguments.tries;
  return profile;
}

oci::ConnectOptions registry_options(const ConnectionArguments& arguments,
                                     const std::atomic<bool>* cancel) {
  oci::ConnectOptions options;
  if (arguments.plain_http) options.plain_http = true;
  if (arguments.tls) options.plain_http = false;
  options.profile = http_profile(arguments);
  options.cancel = cancel;
  options.parallel = arguments.parallel;
  return options;
}

void add_source_options(CLI::App& command, SourceArguments& arguments) {
  command
      .add_option(
          "--source", arguments.sources,
          "Where to get files, in place of the manifest's sources: http(s) URL of a folder or "
          "wheel, a folder (also another store), a wheel, pip:NAME==VERSION, or a bundle in a "
          "registry, oci://HOST/REPOSITORY:TAG. Several are tried in order. Default: "
          "CUBIST_SOURCES, else the manifest's own")
      ->allow_extra_args(false);
  command.add_flag("--offline", arguments.offline, "Use no source that needs the network");
  add_connection_options(command, arguments.connection);
}

Result<FetchOptions> fetch_options(const SourceArguments& arguments, const Manifest& manifest) {
  FetchOptions options;
  options.offline = arguments.offline;
  options.parallel = arguments.connection.parallel;
  options.manifest_folder = manifest.folder;
  const std::vector<std::string> texts =
      arguments.sources.empty() ? config::sources_from_environment() : arguments.sources;
  const std::string origin =
      arguments.sources.empty() ? environment_origin("CUBIST_SOURCES") : "--source";
  for (const std::string& text : texts) {
    auto parsed = parse_source(text);
    if (!parsed) return forward_error(parsed, origin);
    Source source = std::move(*parsed);
    // Given by hand, so relative to where the command runs, not to the manifest.
    if (source.kind != Source::Kind::kPip && !needs_network(source)) {
      source.location = absolute_path(source.location);
    }
    options.sources.push_back(std::move(source));
  }
  options.profile = http_profile(arguments.connection);
  options.open_oci = oci::source_opener(registry_options(arguments.connection, nullptr));
  return options;
}

FetchProgressLine::FetchProgressLine(const CommonOptions& common)
    : enabled_(!common.quiet && !common.json && ::isatty(STDERR_FILENO) == 1) {}

FetchProgressLine::~FetchProgressLine() {
  if (printed_) std::fputs("\r\033[K", stderr);
}

void FetchProgressLine::show(const FetchProgress& progress) {
  if (!enabled_) return;
  constexpr double kMega = 1e6;
  const double rate =
      progress.seconds > 0 ? static_cast<double>(progress.received_bytes) / progress.seconds : 0;
  std::string line =
      fmt::format("{}/{} files, {:.1f} of {:.1f} MB, {:.1f} MB/s", progress.files_done,
                  progress.files_total, static_cast<double>(progress.bytes_done) / kMega,
                  static_cast<double>(progress.bytes_total) / kMega, rate / kMega);
  if (progress.bytes_done > 0 && progress.bytes_done < progress.bytes_total) {
    const double left = progress.seconds *
                        static_cast<double>(progress.bytes_total - progress.bytes_done) /
                        static_cast<double>(progress.bytes_done);
    line += fmt::format(", {:.0f} s left", left);
  }
  if (progress.files_failed != 0) line += fmt::format(", {} failed", progress.files_failed);
  print(line);
}

void FetchProgressLine::show_bytes(std::uint64_t total, std::uint64_t done) {
  constexpr double kMega = 1e6;
  if (enabled_) {
    print(fmt::format("{:.1f} of {:.1f} MB", static_cast<double>(std::min(done, total)) / kMega,
                      static_cast<double>(total) / kMega));
  }
}

void FetchProgressLine::print(const std::string& line) {
  printed_ = true;
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace cubist::tools
