#include "registry/fetch.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "registry/source.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/published.h"
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
using cubist::test::MischiefServer;
using cubist::test::Nginx;
using cubist::test::Published;
using cubist::test::read_bytes;
using cubist::test::write_bytes;
using State = FetchedFile::State;

namespace {

Result<FetchReport> run(const Published& published, const std::vector<Source>& sources = {},
                        std::size_t count = SIZE_MAX) {
  FetchOptions options = impatient_options();
  options.sources = sources;
  options.manifest_folder = published.scratch().path();
  return fetch(published.store(), published.items(count), options);
}

Source http(const std::string& url) { return {Source::Kind::kHttp, url, Published::kPrefix}; }

void check_all_fetched(const Published& published, const Result<FetchReport>& report) {
  REQUIRE(report);
  INFO((report->status() ? "" : report->status().error().message()));
  CHECK(report->count(State::kFetched) == published.kernels().size());
  for (std::size_t i = 0; i < published.kernels().size(); ++i) CHECK(published.in_store(i));
  CHECK(published.count_store_files() == published.kernels().size());
  CHECK(published.count_store_files("tmp") == 0);
}

/// One kernel from one bad place: the code and the words of the failure, and an empty store.
std::string failure(Published& published, const Source& source, StatusCode code) {
  published.set_sources({source});
  const auto report = run(published, {}, 1);
  REQUIRE(report);
  REQUIRE_FALSE(report->status());
  const cubist::Error error = report->status().error();
  INFO(error.message());
  CHECK(error.code() == code);
  CHECK_THAT(error.message(), Catch::Contains("kernel_00000"));
  CHECK_THAT(error.message(), Catch::Contains(published.store_root()));
  CHECK(published.count_store_files() == 0);
  CHECK(published.count_store_files("tmp") == 0);
  return error.message();
}

}  // namespace

TEST_CASE("every kind of source brings the same bytes") {
  Published published;
  const MischiefServer server(published.tree());
  Source source;
  SECTION("a folder") { source = {Source::Kind::kFolder, published.tree(), Published::kPrefix}; }
  SECTION("a folder relative to the manifest") {
    source = {Source::Kind::kFolder, "tree", Published::kPrefix};
  }
  SECTION("a wheel") { source = {Source::Kind::kZip, published.wheel(), Published::kPrefix}; }
  SECTION("a tree behind http") { source = http(server.url("ok")); }
  SECTION("a wheel behind http") {
    source = {Source::Kind::kZip, server.url("ok") + "/" + Published::kWheel, Published::kPrefix};
  }
  published.set_sources({source});
  check_all_fetched(published, run(published));
  const auto again = run(published);
  REQUIRE(again);
  CHECK(again->count(State::kPresent) == published.kernels().size());
  CHECK(again->http.requests == 0);
}

TEST_CASE("a source the user names is searched by prefix, path, file name and digest") {
  Published published;
  published.set_sources({{Source::Kind::kPip, "pack==1.0", Published::kPrefix}});
  const MischiefServer server(published.tree());
  std::string text;
  SECTION("the unpacked wheel") { text = published.tree(); }
  SECTION("the folder with the files itself") {
    text = published.tree() + "/" + Published::kPrefix;
  }
  SECTION("the wheel") { text = published.wheel(); }
  SECTION("a wheel behind http") { text = server.url("ok") + "/" + Published::kWheel; }
  SECTION("a tree behind http") { text = server.url("ok") + "/" + Published::kPrefix; }
  SECTION("another store") {
    const cubist::Store other({published.scratch() / "other", {}});
    FetchOptions options = impatient_options();
    options.sources = {parse_source(published.tree()).value()};
    REQUIRE(fetch(other, published.items(), options));
    text = other.root();
  }
  check_all_fetched(published, run(published, {parse_source(text).value()}));
}

TEST_CASE("a broken entry is replaced and the others are not touched") {
  Published published(10, 5'000);
  const std::vector<Source> tree{{Source::Kind::kFolder, published.tree(), Published::kPrefix}};
  REQUIRE(run(published, tree));
  std::vector<ino_t> before;
  const auto inode = [&](std::size_t i) {
    struct stat info {};
    const auto path = cubist::entry_path(published.store_root(), published.kernels()[i].sha256);
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_ino;
  };
  for (std::size_t i = 0; i < 10; ++i) before.push_back(inode(i));
  const auto broken = cubist::entry_path(published.store_root(), published.kernels()[4].sha256);
  fs::permissions(broken, fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(broken, 100);
  const auto report = run(published, tree);
  REQUIRE(report);
  CHECK(report->count(State::kFetched) == 1);
  CHECK(report->files[4].state == State::kFetched);
  for (std::size_t i = 0; i < 10; ++i) CHECK((inode(i) == before[i]) == (i != 4));
  CHECK(published.in_store(4));
}

TEST_CASE("sources are tried in order, and the error of each is told if none has it") {
  Published published(1);
  const MischiefServer server(published.tree());
  const std::vector<Source> all{http(server.url("404")),
                                http(server.url("wrong")),
                                {Source::Kind::kFolder, published.scratch() / "nowhere", ""},
                                http(server.url("html")),
                                http(server.url("ok"))};
  SECTION("the last one has it") {
    published.set_sources(all);
    check_all_fetched(published, run(published));
  }
  SECTION("none has it") {
    published.set_sources({all[0], all[1], all[2]});
    const auto report = run(published);
    REQUIRE(report);
    const cubist::Error error = report->status().error();
    CHECK(error.code() == StatusCode::kIntegrity);
    CHECK_THAT(error.message(), Catch::Contains("/404/") && Catch::Contains("404 Not Found"));
    CHECK_THAT(error.message(), Catch::Contains("/wrong/") && Catch::Contains("sha256 mismatch"));
    CHECK_THAT(error.message(), Catch::Contains("nowhere") && Catch::Contains("No such file"));
    CHECK(published.count_store_files() == 0);
  }
}

TEST_CASE("what a source does wrong is named, has its code, and leaves nothing in the store") {
  Published published(1);
  const MischiefServer server(published.tree());
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
  CHECK_THAT(failure(published, http(server.url(row.behaviour)), row.code),
             Catch::Contains(row.phrase) && Catch::Contains(server.url(row.behaviour)));
}

TEST_CASE("a wheel behind a server that misbehaves is refused by name, without its bulk") {
  Published published(3, 400'000);
  const MischiefServer server(published.tree());
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
  const Source wheel{Source::Kind::kZip, server.url(row.behaviour) + "/" + Published::kWheel,
                     Published::kPrefix};
  INFO(row.behaviour);
  CHECK_THAT(failure(published, wheel, row.code), Catch::Contains(row.phrase));
}

TEST_CASE("wheels and folders on this machine that are wrong are named too") {
  Published published(1);
  std::string phrase;
  StatusCode code = StatusCode::kIntegrity;
  Source source{Source::Kind::kZip, published.wheel(), Published::kPrefix};
  auto wheel = read_bytes(published.wheel());
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
    source = {Source::Kind::kFolder, published.tree(), "elsewhere/"};
    phrase = "not there";
    code = StatusCode::kIo;
  }
  SECTION("a folder in place of the file") {
    fs::create_directories(published.tree() + "/odd/kernel_00000.cubin");
    source = {Source::Kind::kFolder, published.tree(), "odd/"};
    phrase = "not a regular file";
    code = StatusCode::kIo;
  }
  SECTION("a Git LFS pointer") {
    const std::string text = "version https://git-lfs.github.com/spec/v1\n";
    write_bytes(published.tree() + "/lfs/kernel_00000.cubin", {text.begin(), text.end()});
    source = {Source::Kind::kFolder, published.tree(), "lfs/"};
    phrase = "Git LFS pointer";
  }
  write_bytes(published.wheel(), wheel);
  CHECK_THAT(failure(published, source, code), Catch::Contains(phrase));
}

TEST_CASE("offline, only sources on this machine are used; the rest is missing") {
  Published published(2);
  const MischiefServer server(published.tree());
  FetchOptions options = impatient_options();
  options.offline = true;
  published.set_sources({http(server.url("ok")), {Source::Kind::kPip, "pack==1.0", ""}});
  const auto missing = fetch(published.store(), published.items(), options);
  REQUIRE(missing);
  CHECK(missing->status().error().code() == StatusCode::kOffline);
  CHECK(server.count_requests() == 0);
  published.set_sources(
      {http(server.url("ok")), {Source::Kind::kFolder, published.tree(), Published::kPrefix}});
  check_all_fetched(published, fetch(published.store(), published.items(), options));
  CHECK(server.count_requests() == 0);
}

TEST_CASE(
    "one kernel of a remote wheel costs three requests, and one once its directory is known") {
  Published published(400, 3'000);
  const MischiefServer server(published.tree());
  const Source wheel{Source::Kind::kZip, server.url("ok") + "/" + Published::kWheel,
                     Published::kPrefix};
  const auto first = run(published, {wheel}, 1);
  REQUIRE(first);
  REQUIRE(first->status());
  CHECK(first->http.requests <= 3);
  CHECK(first->http.received_bytes < 200'000);
  const auto second = run(published, {wheel}, 2);
  REQUIRE(second);
  CHECK(second->http.requests == 1);
  CHECK(second->http.received_bytes < 4'000);
}

TEST_CASE("a wheel that changed since its directory was remembered is looked at anew") {
  Published published(4, 20'000);
  const MischiefServer server(published.tree());
  const char* behaviour = GENERATE("ok", "no-etag");
  const Source wheel{Source::Kind::kZip, server.url(behaviour) + "/" + Published::kWheel,
                     Published::kPrefix};
  REQUIRE(run(published, {wheel}, 1));
  // Other members in front: every offset moves.
  const Published larger(5, 20'000);
  auto moved = read_bytes(larger.wheel());
  write_bytes(published.wheel(), moved);
  const auto report = run(published, {wheel}, 3);
  REQUIRE(report);
  INFO((report->status() ? "" : report->status().error().message()));
  if (std::string(behaviour) == "no-etag") CHECK(report->status());
  CHECK(published.in_store(0));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto opened = published.store().open_verified(published.kernels()[i]);
    CHECK(opened);
  }
}

TEST_CASE("a damaged directory cache is passed over") {
  Published published(3);
  const MischiefServer server(published.tree());
  const Source wheel{Source::Kind::kZip, server.url("ok") + "/" + Published::kWheel,
                     Published::kPrefix};
  REQUIRE(run(published, {wheel}, 1));
  for (const auto& file : fs::directory_iterator(published.store_root() + "/index")) {
    fs::permissions(file.path(), fs::perms::owner_write, fs::perm_options::add);
    auto bytes = read_bytes(file.path());
    bytes[bytes.size() - 30] ^= 1;
    write_bytes(file.path(), bytes);
  }
  check_all_fetched(published, [&] {
    auto report = run(published, {wheel});
    if (report) report->files[0].state = State::kFetched;
    return report;
  }());
}

TEST_CASE("a source that keeps failing is given up, and the next one serves all") {
  Published published(60, 2'000);
  const MischiefServer server(published.tree());
  cubist::set_log_level(cubist::LogLevel::kError);
  published.set_sources({http(server.url("403")), http(server.url("ok"))});
  check_all_fetched(published, run(published));
  std::size_t refused = 0;
  const std::string log = server.log();
  for (std::size_t at = 0; (at = log.find("\"/403/", at)) != std::string::npos; ++at) ++refused;
  CHECK(refused < 40);
  cubist::set_log_level(cubist::LogLevel::kWarning);
}

TEST_CASE("cancelling keeps complete files, leaves nothing else, and the next run goes on") {
  Published published(30, 20'000);
  const MischiefServer server(published.tree());
  std::atomic<bool> cancel{false};
  FetchOptions options = impatient_options();
  options.parallel = 2;
  options.cancel = &cancel;
  options.sources = {parse_source(server.url("pace") + "/" + Published::kPrefix).value()};
  options.progress = [&](const cubist::FetchProgress& progress) {
    if (progress.files_done >= 2) cancel = true;
  };
  const auto stopped = fetch(published.store(), published.items(), options);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code() == StatusCode::kInterrupted);
  CHECK_THAT(stopped.error().message(), Catch::Contains("of 30 files"));
  const std::size_t kept = published.count_store_files();
  CHECK(kept >= 2);
  CHECK(kept < 30);
  CHECK(published.count_store_files("tmp") == 0);
  const auto rest =
      run(published, {parse_source(published.tree() + "/" + Published::kPrefix).value()});
  REQUIRE(rest);
  CHECK(rest->count(State::kPresent) == kept);
  CHECK(published.count_store_files() == 30);
}

TEST_CASE("the same digest wanted twice is fetched once, and both items are told") {
  Published published(1);
  const MischiefServer server(published.tree());
  published.set_sources({http(server.url("ok"))});
  auto items = published.items();
  items.push_back(items[0]);
  const auto report = fetch(published.store(), items, impatient_options());
  REQUIRE(report);
  CHECK(report->files.size() == 2);
  CHECK(report->files[1].path == report->files[0].path);
  CHECK(server.count_requests() == 1);
}

TEST_CASE("open_or_fetch hands out the bytes, from the network and then from the store") {
  Published published(1);
  const MischiefServer server(published.tree());
  published.set_sources({http(server.url("ok"))});
  for (int i = 0; i < 2; ++i) {
    const auto cubin = open_or_fetch(published.store(), published.items()[0], impatient_options());
    REQUIRE(cubin);
    CHECK(std::equal(cubin->bytes().begin(), cubin->bytes().end(), published.bytes(0).begin()));
  }
  CHECK(server.count_requests() == 1);
}

TEST_CASE("nginx: a tree, a wheel by ranges, and a redirect from one to the other") {
  if (!Nginx::installed()) {
    WARN("nginx is not installed: not tested");
    return;
  }
  Published published(40, 9'000);
  const Nginx nginx(published.tree(), "location /moved/ { rewrite ^/moved/(.*)$ /$1 redirect; }");
  Source source;
  SECTION("tree") { source = http(nginx.url()); }
  SECTION("wheel") {
    source = {Source::Kind::kZip, nginx.url() + "/" + Published::kWheel, Published::kPrefix};
  }
  SECTION("moved wheel") {
    source = {Source::Kind::kZip, nginx.url() + "/moved/" + Published::kWheel, Published::kPrefix};
  }
  published.set_sources({source});
  check_all_fetched(published, run(published));
  CHECK(nginx.requests().size() <= 43);
}
