#include "registry/fetch.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "registry/source.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/made_release.h"
#include "support/server.h"

namespace fs = std::filesystem;
using cubist::fetch;
using cubist::FetchedFile;
using cubist::FetchOptions;
using cubist::FetchReport;
using cubist::parse_source;
using cubist::Result;
using cubist::Source;
using cubist::StatusCode;
using cubist::test::impatient_options;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;
using cubist::test::Nginx;
using cubist::test::read_bytes;
using cubist::test::write_bytes;
using State = FetchedFile::State;

namespace {

Result<FetchReport> run(const MadeRelease& release, const std::vector<Source>& sources = {},
                        std::size_t count = SIZE_MAX) {
  FetchOptions options = impatient_options();
  options.sources = sources;
  options.manifest_folder = release.scratch().path();
  return fetch(release.store(), release.items(count), options);
}

Source http(const std::string& url) { return {Source::Kind::kHttp, url, MadeRelease::kPrefix}; }

void check_all_fetched(const MadeRelease& release, const Result<FetchReport>& report) {
  REQUIRE(report);
  INFO((report->status() ? "" : report->status().error().message()));
  CHECK(report->count(State::kFetched) == release.kernels().size());
  for (std::size_t i = 0; i < release.kernels().size(); ++i) CHECK(release.in_store(i));
  CHECK(release.count_store_files() == release.kernels().size());
  CHECK(release.count_store_files("tmp") == 0);
}

/// One kernel from one bad place: the code and the words of the failure, and an empty store.
std::string failure(MadeRelease& release, const Source& source, StatusCode code) {
  release.set_sources({source});
  const auto report = run(release, {}, 1);
  REQUIRE(report);
  REQUIRE_FALSE(report->status());
  const cubist::Error error = report->status().error();
  INFO(error.message());
  CHECK(error.code() == code);
  CHECK_THAT(error.message(), Catch::Contains("kernel_00000"));
  CHECK_THAT(error.message(), Catch::Contains(release.store_root()));
  CHECK(release.count_store_files() == 0);
  CHECK(release.count_unfinished_files() == 0);
  return error.message();
}

}  // namespace

TEST_CASE("every kind of source brings the same bytes") {
  MadeRelease release;
  const MischiefServer server(release.tree());
  Source source;
  SECTION("a folder") { source = {Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix}; }
  SECTION("a folder relative to the manifest") {
    source = {Source::Kind::kFolder, "tree", MadeRelease::kPrefix};
  }
  SECTION("a wheel") { source = {Source::Kind::kZip, release.wheel(), MadeRelease::kPrefix}; }
  SECTION("a tree behind http") { source = http(server.url("ok")); }
  SECTION("a wheel behind http") {
    source = {Source::Kind::kZip, server.url("ok") + "/" + MadeRelease::kWheel,
              MadeRelease::kPrefix};
  }
  release.set_sources({source});
  check_all_fetched(release, run(release));
  const auto again = run(release);
  REQUIRE(again);
  CHECK(again->count(State::kPresent) == release.kernels().size());
  CHECK(again->http.requests == 0);
}

TEST_CASE("a source the user names is searched by prefix, path, file name and digest") {
  MadeRelease release;
  release.set_sources({{Source::Kind::kPip, "pack==1.0", MadeRelease::kPrefix}});
  const MischiefServer server(release.tree());
  std::string text;
  SECTION("the unpacked wheel") { text = release.tree(); }
  SECTION("the folder with the files itself") {
    text = release.tree() + "/" + MadeRelease::kPrefix;
  }
  SECTION("the wheel") { text = release.wheel(); }
  SECTION("a wheel behind http") { text = server.url("ok") + "/" + MadeRelease::kWheel; }
  SECTION("a tree behind http") { text = server.url("ok") + "/" + MadeRelease::kPrefix; }
  SECTION("another store") {
    const cubist::Store other({release.scratch() / "other", {}});
    FetchOptions options = impatient_options();
    options.sources = {parse_source(release.tree()).value()};
    REQUIRE(fetch(other, release.items(), options));
    text = other.root();
  }
  check_all_fetched(release, run(release, {parse_source(text).value()}));
}

TEST_CASE("a broken entry is replaced and the others are not touched") {
  MadeRelease release(10, 5'000);
  const std::vector<Source> tree{{Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix}};
  REQUIRE(run(release, tree));
  std::vector<ino_t> before;
  const auto inode = [&](std::size_t i) {
    struct stat info {};
    const auto path = cubist::entry_path(release.store_root(), release.kernels()[i].sha256);
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_ino;
  };
  for (std::size_t i = 0; i < 10; ++i) before.push_back(inode(i));
  const auto broken = cubist::entry_path(release.store_root(), release.kernels()[4].sha256);
  fs::permissions(broken, fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(broken, 100);
  const auto report = run(release, tree);
  REQUIRE(report);
  CHECK(report->count(State::kFetched) == 1);
  CHECK(report->files[4].state == State::kFetched);
  for (std::size_t i = 0; i < 10; ++i) CHECK((inode(i) == before[i]) == (i != 4));
  CHECK(release.in_store(4));
}

TEST_CASE("sources are tried in order, and the error of each is told if none has it") {
  MadeRelease release(1);
  const MischiefServer server(release.tree());
  const std::vector<Source> all{http(server.url("404")),
                                http(server.url("wrong")),
                                {Source::Kind::kFolder, release.scratch() / "nowhere", ""},
                                http(server.url("html")),
                                http(server.url("ok"))};
  SECTION("the last one has it") {
    release.set_sources(all);
    check_all_fetched(release, run(release));
  }
  SECTION("none has it") {
    release.set_sources({all[0], all[1], all[2]});
    const auto report = run(release);
    REQUIRE(report);
    const cubist::Error error = report->status().error();
    CHECK(error.code() == StatusCode::kIntegrity);
    CHECK_THAT(error.message(), Catch::Contains("/404/") && Catch::Contains("404 Not Found"));
    CHECK_THAT(error.message(), Catch::Contains("/wrong/") && Catch::Contains("sha256 mismatch"));
    CHECK_THAT(error.message(), Catch::Contains("nowhere") && Catch::Contains("No such file"));
    CHECK(release.count_store_files() == 0);
  }
}

TEST_CASE("what a source does wrong is named, has its code, and leaves nothing in the store") {
  MadeRelease release(1);
  const MischiefServer server(release.tree());
  struct Row {
    const char* behaviour;
    StatusCode code;
    const char* phrase;
  };
  const auto row = GENERATE(values<Row>({
      {"403", StatusCode::kNetwork, "403 Forbidden"},
      {"404", StatusCode::kNetwork, "404 Not Found"},
      {"500", StatusCode::kNetwork, "500 Internal Server Error (3 tries)"},
      {"truncate", StatusCode::kNetwork, "(3 tries)"},
      {"truncate-no-length", StatusCode::kIntegrity, "truncated"},
      {"short", StatusCode::kIntegrity, "truncated"},
      {"long", StatusCode::kIntegrity, "announces"},
      {"stall", StatusCode::kNetwork, "stalled"},
      {"empty", StatusCode::kIntegrity, "empty"},
      {"wrong", StatusCode::kIntegrity, "sha256 mismatch"},
      {"zeros", StatusCode::kIntegrity, "ends in zeros"},
      {"html", StatusCode::kIntegrity, "HTML"},
      {"html-as-data", StatusCode::kIntegrity, "HTML"},
      {"lfs", StatusCode::kIntegrity, "Git LFS pointer"},
      {"gzip", StatusCode::kNetwork, "packed"},
      {"loop", StatusCode::kNetwork, "redirects"},
  }));
  INFO(row.behaviour);
  CHECK_THAT(failure(release, http(server.url(row.behaviour)), row.code),
             Catch::Contains(row.phrase) && Catch::Contains(server.url(row.behaviour)));
}

TEST_CASE("a wheel behind a server that misbehaves is refused by name, without its bulk") {
  MadeRelease release(3, 400'000);
  const MischiefServer server(release.tree());
  struct Row {
    const char* behaviour;
    StatusCode code;
    const char* phrase;
  };
  const auto row = GENERATE(values<Row>({
      {"no-range", StatusCode::kNetwork, "ignores Range requests"},
      {"wrong-range", StatusCode::kIntegrity, "zip directory"},
      {"no-content-range", StatusCode::kNetwork, "Content-Range"},
      {"html", StatusCode::kNetwork, "ignores Range requests"},
      {"404", StatusCode::kNetwork, "404"},
      {"truncate", StatusCode::kNetwork, "(3 tries)"},
      {"zeros", StatusCode::kIntegrity, "zip"},
  }));
  const Source wheel{Source::Kind::kZip, server.url(row.behaviour) + "/" + MadeRelease::kWheel,
                     MadeRelease::kPrefix};
  INFO(row.behaviour);
  CHECK_THAT(failure(release, wheel, row.code), Catch::Contains(row.phrase));
}

TEST_CASE("wheels and folders on this machine that are wrong are named too") {
  MadeRelease release(1);
  std::string phrase;
  StatusCode code = StatusCode::kIntegrity;
  Source source{Source::Kind::kZip, release.wheel(), MadeRelease::kPrefix};
  auto wheel = read_bytes(release.wheel());
  SECTION("truncated") {
    wheel.resize(wheel.size() / 2);
    phrase = "zip";
  }
  SECTION("a member whose bytes were changed") {
    wheel[wheel.size() / 2] ^= 0xff;
    phrase = "damaged";
  }
  SECTION("empty") {
    wheel.clear();
    phrase = "zip";
  }
  SECTION("HTML") {
    wheel.assign(5'000, '<');
    phrase = "zip";
  }
  SECTION("not there") {
    source.location += ".missing";
    phrase = "No such file";
    code = StatusCode::kIo;
  }
  SECTION("another release") {
    source.prefix = "pack/other/";
    phrase = "another release";
  }
  SECTION("a folder that is a file") {
    source.kind = Source::Kind::kFolder;
    phrase = "not a folder";
    code = StatusCode::kIo;
  }
  SECTION("a folder without the file") {
    source = {Source::Kind::kFolder, release.tree(), "elsewhere/"};
    phrase = "not there";
    code = StatusCode::kIo;
  }
  SECTION("a folder in place of the file") {
    fs::create_directories(release.tree() + "/odd/kernel_00000.cubin");
    source = {Source::Kind::kFolder, release.tree(), "odd/"};
    phrase = "not a regular file";
    code = StatusCode::kIo;
  }
  SECTION("a Git LFS pointer") {
    const std::string text = "version https://git-lfs.github.com/spec/v1\n";
    write_bytes(release.tree() + "/lfs/kernel_00000.cubin", {text.begin(), text.end()});
    source = {Source::Kind::kFolder, release.tree(), "lfs/"};
    phrase = "Git LFS pointer";
  }
  write_bytes(release.wheel(), wheel);
  CHECK_THAT(failure(release, source, code), Catch::Contains(phrase));
}

TEST_CASE("offline, only sources on this machine are used; the rest is missing") {
  MadeRelease release(2);
  const MischiefServer server(release.tree());
  FetchOptions options = impatient_options();
  options.offline = true;
  release.set_sources({http(server.url("ok")), {Source::Kind::kPip, "pack==1.0", ""}});
  const auto missing = fetch(release.store(), release.items(), options);
  REQUIRE(missing);
  CHECK(missing->status().error().code() == StatusCode::kOffline);
  CHECK(server.count_requests() == 0);
  release.set_sources(
      {http(server.url("ok")), {Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix}});
  check_all_fetched(release, fetch(release.store(), release.items(), options));
  CHECK(server.count_requests() == 0);
}

TEST_CASE(
    "one kernel of a remote wheel costs three requests, and one once its directory is known") {
  MadeRelease release(400, 3'000);
  const MischiefServer server(release.tree());
  const Source wheel{Source::Kind::kZip, server.url("ok") + "/" + MadeRelease::kWheel,
                     MadeRelease::kPrefix};
  const auto first = run(release, {wheel}, 1);
  REQUIRE(first);
  REQUIRE(first->status());
  CHECK(first->http.requests <= 3);
  CHECK(first->http.received_bytes < 200'000);
  const auto second = run(release, {wheel}, 2);
  REQUIRE(second);
  CHECK(second->http.requests == 1);
  CHECK(second->http.received_bytes < 4'000);
}

TEST_CASE("a wheel that changed since its directory was remembered is looked at anew") {
  MadeRelease release(4, 20'000);
  const MischiefServer server(release.tree());
  const char* behaviour = GENERATE("ok", "no-etag");
  const Source wheel{Source::Kind::kZip, server.url(behaviour) + "/" + MadeRelease::kWheel,
                     MadeRelease::kPrefix};
  REQUIRE(run(release, {wheel}, 1));
  // Other members in front: every offset moves.
  const MadeRelease larger(5, 20'000);
  auto moved = read_bytes(larger.wheel());
  write_bytes(release.wheel(), moved);
  const auto report = run(release, {wheel}, 3);
  REQUIRE(report);
  INFO((report->status() ? "" : report->status().error().message()));
  if (std::string(behaviour) == "no-etag") CHECK(report->status());
  CHECK(release.in_store(0));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto opened = release.store().open_verified(release.kernels()[i]);
    CHECK(opened);
  }
}

TEST_CASE("a damaged directory cache is passed over") {
  MadeRelease release(3);
  const MischiefServer server(release.tree());
  const Source wheel{Source::Kind::kZip, server.url("ok") + "/" + MadeRelease::kWheel,
                     MadeRelease::kPrefix};
  REQUIRE(run(release, {wheel}, 1));
  for (const auto& file : fs::directory_iterator(release.store_root() + "/index")) {
    fs::permissions(file.path(), fs::perms::owner_write, fs::perm_options::add);
    auto bytes = read_bytes(file.path());
    bytes[bytes.size() - 30] ^= 1;
    write_bytes(file.path(), bytes);
  }
  check_all_fetched(release, [&] {
    auto report = run(release, {wheel});
    if (report) report->files[0].state = State::kFetched;
    return report;
  }());
}

TEST_CASE("a source that keeps failing is given up, and the next one serves all") {
  MadeRelease release(60, 2'000);
  const MischiefServer server(release.tree());
  cubist::set_log_level(cubist::LogLevel::kError);
  release.set_sources({http(server.url("403")), http(server.url("ok"))});
  check_all_fetched(release, run(release));
  std::size_t refused = 0;
  const std::string log = server.log();
  for (std::size_t at = 0; (at = log.find("\"/403/", at)) != std::string::npos; ++at) ++refused;
  CHECK(refused < 40);
  cubist::set_log_level(cubist::LogLevel::kWarning);
}

TEST_CASE("cancelling keeps complete files, leaves nothing else, and the next run goes on") {
  MadeRelease release(30, 20'000);
  const MischiefServer server(release.tree());
  std::atomic<bool> cancel{false};
  FetchOptions options = impatient_options();
  options.parallel = 2;
  options.cancel = &cancel;
  options.sources = {parse_source(server.url("pace") + "/" + MadeRelease::kPrefix).value()};
  options.progress = [&](const cubist::FetchProgress& progress) {
    if (progress.files_done >= 2) cancel = true;
  };
  const auto stopped = fetch(release.store(), release.items(), options);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code() == StatusCode::kInterrupted);
  CHECK_THAT(stopped.error().message(), Catch::Contains("of 30 files"));
  const std::size_t kept = release.count_store_files();
  CHECK(kept >= 2);
  CHECK(kept < 30);
  CHECK(release.count_unfinished_files() == 0);
  const auto rest =
      run(release, {parse_source(release.tree() + "/" + MadeRelease::kPrefix).value()});
  REQUIRE(rest);
  CHECK(rest->count(State::kPresent) == kept);
  CHECK(release.count_store_files() == 30);
}

TEST_CASE("the same digest wanted twice is fetched once, and both items are told") {
  MadeRelease release(1);
  const MischiefServer server(release.tree());
  release.set_sources({http(server.url("ok"))});
  auto items = release.items();
  items.push_back(items[0]);
  const auto report = fetch(release.store(), items, impatient_options());
  REQUIRE(report);
  CHECK(report->files.size() == 2);
  CHECK(report->files[1].path == report->files[0].path);
  CHECK(server.count_requests() == 1);
}

TEST_CASE("open_or_fetch hands out the bytes, from the network and then from the store") {
  MadeRelease release(1);
  const MischiefServer server(release.tree());
  release.set_sources({http(server.url("ok"))});
  for (int i = 0; i < 2; ++i) {
    const auto cubin = open_or_fetch(release.store(), release.items()[0], impatient_options());
    REQUIRE(cubin);
    CHECK(std::equal(cubin->bytes().begin(), cubin->bytes().end(), release.bytes(0).begin()));
  }
  CHECK(server.count_requests() == 1);
}

TEST_CASE("nginx: a tree, a wheel by ranges, and a redirect from one to the other") {
  if (!Nginx::installed()) {
    WARN("nginx is not installed: not tested");
    return;
  }
  MadeRelease release(40, 9'000);
  const Nginx nginx(release.tree(), "location /moved/ { rewrite ^/moved/(.*)$ /$1 redirect; }");
  Source source;
  SECTION("tree") { source = http(nginx.url()); }
  SECTION("wheel") {
    source = {Source::Kind::kZip, nginx.url() + "/" + MadeRelease::kWheel, MadeRelease::kPrefix};
  }
  SECTION("moved wheel") {
    source = {Source::Kind::kZip, nginx.url() + "/moved/" + MadeRelease::kWheel,
              MadeRelease::kPrefix};
  }
  release.set_sources({source});
  check_all_fetched(release, run(release));
  CHECK(nginx.requests().size() <= 43);
}
