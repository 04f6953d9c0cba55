#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "command.h"
#include "manifest/manifest.h"
#include "manifest_names.h"
#include "oci/session.h"
#include "registry/fetch.h"

namespace cubist::tools {

/// Flags that say how many connections to make and how long to wait for them.
struct ConnectionArguments {
  unsigned parallel = 8;
  double connect_timeout_s = 15;
  double stall_timeout_s = 30;
  int tries = 4;
  bool plain_http = false;  ///< of OCI registries
  bool tls = false;
};
void add_connection_options(CLI::App& command, ConnectionArguments& arguments);
std::shared_ptr<const HttpProfile> http_profile(const ConnectionArguments& arguments);

/// For OCI registries. cancel  of the command; outlives the result
oci::ConnectOptions registry_options(const ConnectionArguments& arguments,
                                     const std::atomic<bool>* cancel);

/// Flags that say where artifacts come from, and those above.
struct SourceArguments {
  std::vector<std::string> sources;
  bool offline = false;
  ConnectionArguments connection;
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
  /// One call at a time, from any thread.
  void show_bytes(std::uint64_t total, std::uint64_t done);

 private:
  void print(const std::string& line);

  bool enabled_;
  bool printed_ = false;
};

/// "1,234,567"
std::string with_commas(std::uint64_t number);

}  // namespace cubist::tools
