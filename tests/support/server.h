#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/scratch.h"

namespace cubist::test {

/// A program in the background, ended with the object.
class Background {
 public:
  explicit Background(const std::vector<std::string>& arguments);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  bool running();
  void end();

 private:
  pid_t pid_ = -1;
};

/// The system's nginx on a free port of 127.0.0.1 with a configuration of its own.
class Nginx {
 public:
  /// root    folder that is served
  /// server  more lines for the server block
  /// http    more lines for the block around it
  explicit Nginx(const std::string& root, const std::string& server = {},
                 const std::string& http = {});

  static bool installed();
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// Lines of the access log: "<method> <path> <status> <bytes of body>".
  std::vector<std::string> requests() const;

 private:
  Scratch scratch_;
  int port_ = 0;
  std::unique_ptr<Background> process_;
};

/// tests/support/mischief_server.py on a folder.
class MischiefServer {
 public:
  explicit MischiefServer(const std::string& root);

  std::string url(const std::string& behaviour = {}) const {
    return "http://127.0.0.1:" + std::to_string(port_) + (behaviour.empty() ? "" : "/" + behaviour);
  }
  int port() const { return port_; }
  /// The log as JSON text.
  std::string log() const;
  std::size_t count_requests() const;

 private:
  Scratch scratch_;
  int port_ = 0;
  std::unique_ptr<Background> process_;
};

/// True once something accepts connections on a port of this machine; false after a few seconds.
bool wait_for_port(int port);
/// A port that was free a moment ago.
int free_port();

}  // namespace cubist::test
