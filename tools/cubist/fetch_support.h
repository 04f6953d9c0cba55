#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "command.h"
#include "manifest/manifest.h"
#include "manifest_names.h"
#include "registry/fetch.h"

namespace cubist::tools {

/// Flags that say where artifacts come from and how long to wait for them.
struct SourceArguments {
  std::vector<std::string> sources;
  bool offline = false;
  unsigned parallel = 8;
  double connect_timeout_s = 15;
  double stall_timeout_s = 30;
  int tries = 4;
};
void add_source_options(CLI::App& command, SourceArguments& arguments);

/// errors  kInvalidArgument, kNotFound: a --source that is none
Result<FetchOptions> fetch_options(const SourceArguments& arguments, const Manifest& manifest);

/// A line on standard error that rewrites itself; silent unless that is a terminal.
class FetchProgressLine {
 public:
  explicit FetchProgressLine(const CommonOptions& common);
  ~FetchProgressLine();
  FetchProgressLine(const FetchProgressLine&) = delete;
  FetchProgressLine& operator=(const FetchProgressLine&) = delete;

  void show(const FetchProgress& progress);

 private:
  bool enabled_;
  bool printed_ = false;
};

/// "1,234,567"
std::string with_commas(std::uint64_t number);

}  // namespace cubist::tools
