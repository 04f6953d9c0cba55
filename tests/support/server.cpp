#include "support/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace cubist::test {
namespace {

constexpr int kTries = 500;
constexpr std::chrono::milliseconds kPause{20};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool connects(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool ok = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return ok;
}

std::string read_text(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The smallest GET there is; these tests must not test the client with itself.
std::string plain_get(int port, const std::string& path) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  std::string answer;
  const std::string ask = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::write(fd, ask.data(), ask.size()) == static_cast<ssize_t>(ask.size())) {
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  ::close(fd);
  const std::size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? std::string() : answer.substr(body + 4);
}

}  // namespace

Background::Background(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (::posix_spawnp(&pid_, argv[0], nullptr, nullptr, argv.data(), environ) != 0) pid_ = -1;
}

bool Background::running() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ > 0;
}

void Background::end() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Background::~Background() { end(); }

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no free port");
  }
  ::close(fd);
  return ntohs(address.sin_port);
}

bool wait_for_port(int port) {
  for (int i = 0; i < kTries; ++i) {
    if (connects(port)) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

bool Nginx::installed() {
  return std::filesystem::exists("/usr/sbin/nginx") || std::filesystem::exists("/usr/bin/nginx");
}

Nginx::Nginx(const std::string& root, const std::string& server, const std::string& http) {
  constexpr int kPortTries = 5;  // another program may take the port before nginx does
  for (int i = 0; i < kPortTries; ++i) {
    port_ = free_port();
    std::ofstream(scratch_ / "nginx.conf")
        << "daemon off; master_process off; pid " << scratch_ / "pid"
        << ";\n"
        << "error_log " << scratch_ / "error.log"
        << ";\n"
        << "events { worker_connections 512; }\n"
        << "http {\n  log_format t '$request_method $request_uri $status $body_bytes_sent';\n"
        << "  access_log " << scratch_ / "access.log"
        << " t;\n"
        << "  default_type application/octet-stream; sendfile on; keepalive_requests 100000;\n";
    std::ofstream conf(scratch_ / "nginx.conf", std::ios::app);
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      conf << "  " << kind << "_temp_path " << scratch_ / "tmp"
           << ";\n";
    }
    conf << http << "\n  server {\n    listen 127.0.0.1:" << port_ << ";\n    root " << root
         << ";\n"
         << server << "\n  }\n}\n";
    conf.close();
    process_ = std::make_unique<Background>(
        std::vector<std::string>{"nginx", "-p", scratch_.path(), "-e", scratch_ / "error.log", "-c",
                                 scratch_ / "nginx.conf"});
    if (wait_for_port(port_) && process_->running()) return;
  }
  throw std::runtime_error("nginx did not start: " + read_text(scratch_ / "error.log"));
}

std::vector<std::string> Nginx::requests() const {
  std::ifstream stream(scratch_ / "access.log");
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

MischiefServer::MischiefServer(const std::string& root) {
  process_ = std::make_unique<Background>(std::vector<std::string>{
      "python3", CUBIST_SOURCE_DIR "/tests/support/mischief_server.py", root, scratch_ / "port"});
  for (int i = 0; i < kTries && port_ == 0; ++i) {
    std::this_thread::sleep_for(kPause);
    const std::string text = read_text(scratch_ / "port");
    if (!text.empty()) port_ = std::stoi(text);
  }
  if (port_ == 0) throw std::runtime_error("mischief_server.py did not start");
}

std::string MischiefServer::log() const { return plain_get(port_, "/_log"); }

std::size_t MischiefServer::count_requests() const {
  const std::string text = log();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("\"path\"", at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace cubist::test
