#include "fetch_support.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "config/configuration.h"
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

void add_source_options(CLI::App& command, SourceArguments& arguments) {
  constexpr double kMostSeconds = 24 * 3600;
  command
      .add_option(
          "--source", arguments.sources,
          "Where to get files, in place of the manifest's sources: http(s) URL of a folder or "
          "wheel, a folder (also another store), a wheel, or pip:NAME==VERSION. Several are "
          "tried in order. Default: CUBIST_SOURCES, else the manifest's own")
      ->allow_extra_args(false);
  command.add_flag("--offline", arguments.offline, "Use no source that needs the network");
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
}

Result<FetchOptions> fetch_options(const SourceArguments& arguments, const Manifest& manifest) {
  FetchOptions options;
  options.offline = arguments.offline;
  options.parallel = arguments.parallel;
  options.manifest_folder = manifest.folder;
  const std::vector<std::string> texts =
      arguments.sources.empty() ? config::sources_from_environment() : arguments.sources;
  for (const std::string& text : texts) {
    CUBIST_ASSIGN_OR_RETURN(Source source, parse_source(text));
    // Given by hand, so relative to where the command runs, not to the manifest.
    if (source.kind != Source::Kind::kPip && !needs_network(source)) {
      source.location = absolute_path(source.location);
    }
    options.sources.push_back(std::move(source));
  }
  auto profile = std::make_shared<HttpProfile>(http_profile_from_environment());
  profile->connect_timeout = milliseconds_of(arguments.connect_timeout_s);
  profile->stall_timeout = milliseconds_of(arguments.stall_timeout_s);
  profile->retry.max_tries = arguments.tries;
  options.profile = std::move(profile);
  return options;
}

FetchProgressLine::FetchProgressLine(const CommonOptions& common)
    : enabled_(!common.quiet && !common.json && ::isatty(STDERR_FILENO) == 1) {}

FetchProgressLine::~FetchProgressLine() {
  if (printed_) std::fputs("\r\033[K", stderr);
}

void FetchProgressLine::show(const FetchProgress& progress) {
  if (!enabled_) return;
  printed_ = true;
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
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace cubist::tools
