// Fetching over TLS and HTTP/2 from an nginx with a certificate of a self-made authority, and what
// becomes of credentials.
#include <cstdlib>
#include <fstream>

#include "support/catch.h"
#include "support/environment.h"
#include "support/release_cli.h"
#include "support/server.h"

namespace fs = std::filesystem;
using Catch::Contains;
using cubist::Source;
using cubist::test::Environment;
using cubist::test::file_text;
using cubist::test::free_port;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;
using cubist::test::Nginx;
using cubist::test::ReleaseCli;
using cubist::test::Scratch;
using cubist::test::ToolRun;

namespace {

/// An authority of its own and a certificate for this machine.
struct Authority {
  Scratch scratch;
  bool made = false;

  Authority() {
    std::ofstream(scratch / "san") << "subjectAltName=IP:127.0.0.1,DNS:localhost\n";
    const std::string at = "cd '" + scratch.path() + "' && ";
    const std::string command =
        at +
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj '/CN=test "
        "authority' -days 2 && openssl req -newkey rsa:2048 -nodes -keyout key.pem -out req.pem "
        "-subj /CN=localhost && openssl x509 -req -in req.pem -CA ca.pem -CAkey ca.key "
        "-CAcreateserial -out cert.pem -days 2 -extfile san && mkdir hashed && cp ca.pem hashed/ "
        "&& openssl rehash hashed";
    made = std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
  }
};

struct Secured {
  Authority authority;
  ReleaseCli cli{20, 20'000};
  int port = free_port();
  std::unique_ptr<Nginx> nginx;

  /// False where there is no nginx or openssl to test with.
  bool start() {
    if (!Nginx::installed() || !authority.made) {
      WARN("nginx or openssl is not installed: not tested");
      return false;
    }
    nginx = std::make_unique<Nginx>(
        cli.release.tree(),
        "listen 127.0.0.1:" + std::to_string(port) + " ssl http2; ssl_certificate " +
            (authority.scratch / "cert.pem") + "; ssl_certificate_key " +
            (authority.scratch / "key.pem") +
            "; location /over/ { rewrite ^/over/(.*)$ http://127.0.0.1:1/$1 redirect; }"
            "\n    access_log " +
            (authority.scratch / "protocols") + " p;",
        "log_format p '$server_protocol $status $connection';");
    cli.set_source({Source::Kind::kHttp, url(), MadeRelease::kPrefix});
    return true;
  }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port); }
  std::string protocols() const { return file_text(authority.scratch / "protocols"); }
};

std::size_t count_lines_with(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) {
    ++found;
  }
  return found;
}

/// Everything that could hold a secret after a run.
std::string everything(const ToolRun& run, const std::string& folder) {
  std::string text = run.out + run.err;
  if (!fs::exists(folder)) return text;
  for (const auto& file : fs::recursive_directory_iterator(folder)) {
    if (file.is_regular_file()) text += file_text(file.path());
    text += file.path();
  }
  return text;
}

}  // namespace

TEST_CASE_METHOD(Secured, "TLS with an authority of one's own, over HTTP/2, on few connections") {
  if (!start()) return;
  const std::string name =
      GENERATE("CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR");
  const std::string value =
      name == "SSL_CERT_DIR" ? authority.scratch / "hashed" : authority.scratch / "ca.pem";
  Environment::Values values{{"CURL_CA_BUNDLE", std::nullopt},
                             {"SSL_CERT_FILE", std::nullopt},
                             {"SSL_CERT_DIR", std::nullopt},
                             {"REQUESTS_CA_BUNDLE", std::nullopt},
                             {name, value}};
  const Environment environment(values);
  const ToolRun run = cli.fetch({"--all"});
  INFO(name << ": " << run.err);
  CHECK(run.exit_code == 0);
  for (std::size_t i = 0; i < 20; ++i) CHECK(cli.release.in_store(i));
  CHECK(count_lines_with(protocols(), "HTTP/2.0 200") == 20);
}

TEST_CASE_METHOD(Secured, "a certificate that nobody vouches for is refused with what to do") {
  if (!start()) return;
  const Environment environment(Environment::Values{{"CURL_CA_BUNDLE", std::nullopt},
                                                    {"SSL_CERT_FILE", std::nullopt},
                                                    {"SSL_CERT_DIR", std::nullopt},
                                                    {"REQUESTS_CA_BUNDLE", std::nullopt}});
  const ToolRun run = cli.fetch({"--kernel", "kernel_00000"});
  CHECK(run.exit_code == 5);
  CHECK_THAT(run.err, Contains("certificate") && Contains("CURL_CA_BUNDLE") && Contains(url()));
  CHECK(protocols().find("200") == std::string::npos);
  CHECK(cli.release.count_store_files() == 0);
}

TEST_CASE_METHOD(Secured, "a redirect from https to plain http is not followed") {
  if (!start()) return;
  const Environment environment(
      Environment::Values{{"CURL_CA_BUNDLE", authority.scratch / "ca.pem"}});
  cli.set_source({Source::Kind::kHttp, url() + "/over", MadeRelease::kPrefix});
  const ToolRun run = cli.fetch({"--kernel", "kernel_00000"});
  CHECK(run.exit_code == 5);
  CHECK_THAT(run.err, Contains("from https to plain http") && Contains("not followed"));
}

TEST_CASE("credentials reach the first host alone and show nowhere, whatever goes wrong") {
  ReleaseCli cli(1, 30'000);
  const MischiefServer server(cli.release.tree());
  const std::string port = std::to_string(server.port());
  constexpr const char* kSecret = "s3cr3t-w0rd";
  const std::string netrc = cli.release.scratch() / "netrc";
  std::ofstream(netrc) << "machine 127.0.0.1 login someone password " << kSecret << "\n"
                       << "machine localhost login other password " << kSecret << "2\n";
  fs::permissions(netrc, fs::perms::owner_read | fs::perms::owner_write);
  const std::string way = GENERATE("url", "netrc", "token");
  const std::string behaviour =
      GENERATE("ok", "403", "500", "html", "truncate", "stall", "wrong", "redirect-to-other-host");
  Environment::Values values{{"CUBIST_LOG_LEVEL", "debug"},
                             {"NETRC", way == "netrc" ? netrc : "/dev/null"},
                             {"CUBIST_BEARER_TOKEN", std::nullopt}};
  if (way == "token") {
    values.back().second = std::string("127.0.0.1=") + kSecret + ",localhost=" + kSecret + "2";
  }
  const Environment environment(values);
  const std::string user = way == "url" ? std::string("someone:") + kSecret + "@" : "";
  // A manifest may hold none; a source that the user names may.
  const std::string source =
      "http://" + user + "127.0.0.1:" + port + "/" + behaviour + "/" + MadeRelease::kPrefix;
  const ToolRun run = cli.fetch({"--all", "--json", "--source", source});
  INFO(way << " " << behaviour << ": " << run.err);
  CHECK(run.exit_code == (behaviour == "ok" || behaviour == "redirect-to-other-host" ? 0
                          : behaviour == "html" || behaviour == "wrong"              ? 4
                                                                                     : 5));
  CHECK(everything(run, cli.release.store_root()).find(kSecret) == std::string::npos);
  const std::string log = server.log();
  CHECK(log.find(way == "token" ? "Bearer " : "Basic ") != std::string::npos);
  if (behaviour == "redirect-to-other-host") {
    CHECK(log.find("\"host\": \"localhost") != std::string::npos);
    CHECK(log.find("\"authorization\": \"\"") != std::string::npos);
    CHECK(count_lines_with(log, "\"authorization\": \"B") == 1);
  }
}
