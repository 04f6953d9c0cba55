#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/catch.h"
#include "support/environment.h"
#include "support/made_release.h"
#include "support/server.h"
#include "support/tool.h"

namespace fs = std::filesystem;
using Catch::Contains;
using Catch::StartsWith;
using cubist::Source;
using cubist::test::Environment;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;
using cubist::test::Nginx;
using cubist::test::read_bytes;
using cubist::test::run_tool;
using cubist::test::ToolRun;
using cubist::test::write_bytes;

namespace {

struct Cli {
  MadeRelease release{3, 50'000};
  std::string manifest = release.write_manifest_file();

  ToolRun fetch(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"fetch", "--manifest",        manifest, "--store",
                                 store(), "--stall-timeout",   "0.4",    "--tries",
                                 "2",     "--connect-timeout", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return run_tool(all);
  }
  ToolRun verify(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"verify", "--store", store()};
    all.insert(all.end(), more.begin(), more.end());
    return run_tool(all);
  }
  std::string store() const { return release.store_root(); }
  std::string entry(std::size_t kernel) const {
    return cubist::entry_path(store(), release.kernels()[kernel].sha256);
  }
  void set_source(const Source& source) {
    release.set_sources({source});
    manifest = release.write_manifest_file();
  }
  void damage(std::size_t kernel) const {
    fs::permissions(entry(kernel), fs::perms::owner_write, fs::perm_options::add);
    auto bytes = read_bytes(entry(kernel));
    bytes[20'000] ^= 1;
    write_bytes(entry(kernel), bytes);
  }
};

ino_t inode(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

}  // namespace

TEST_CASE_METHOD(
    Cli, "fetch prints where the file is, its bytes and the requests, and says so in JSON") {
  const MischiefServer server(release.tree());
  set_source(
      {Source::Kind::kZip, server.url("ok") + "/" + MadeRelease::kWheel, MadeRelease::kPrefix});
  const ToolRun run = fetch({"--kernel", "kernel_00001"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK_THAT(run.out, StartsWith("kernel_00001: fetched, 50,001 bytes from " + server.url("ok")) &&
                          Contains("\n  " + entry(1) + "\n") &&
                          Contains("1 fetched, 0 present, 0 failed; 2 requests"));
  const ToolRun json = fetch({"--sha256", release.kernels()[1].sha256.hex(), "--json"});
  CHECK(json.exit_code == 0);
  CHECK_THAT(json.out, Contains("\"state\": \"present\"") && Contains("\"requests\": 0") &&
                           Contains("\"path\": \"" + entry(1) + "\""));
  CHECK_THAT(fetch({"--kernel", "kernel_00001"}).out,
             StartsWith("kernel_00001: present, 50,001 bytes\n  " + entry(1) + "\n"));
}

TEST_CASE_METHOD(Cli, "fetch --quiet prints nothing on success, and the error on failure") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  const ToolRun run = fetch({"--all", "--quiet"});
  CHECK(run.exit_code == 0);
  CHECK(run.out.empty());
  CHECK(run.err.empty());
  set_source({Source::Kind::kFolder, release.tree() + "/none", MadeRelease::kPrefix});
  fs::remove(entry(0));
  const ToolRun failed = fetch({"--all", "--quiet"});
  CHECK(failed.exit_code == 6);
  CHECK(failed.out.empty());
  CHECK_THAT(failed.err, Contains("kernel_00000"));
}

TEST_CASE_METHOD(Cli, "a folder beside the manifest's is named without detour") {
  const std::string tree = fs::path(release.tree()).filename().string();
  const std::string folder = fs::path(manifest).parent_path().string();
  fs::create_directories(folder + "/manifests");
  set_source({Source::Kind::kFolder, "../" + tree, MadeRelease::kPrefix});
  fs::rename(manifest, folder + "/manifests/m.json");
  manifest = folder + "/manifests/m.json";
  const ToolRun run = fetch({"--kernel", "kernel_00000"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains(" from " + release.tree() + "/"));
}

TEST_CASE_METHOD(Cli, "fetch --working-set brings the set's kernels and no other") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  const std::string set = release.scratch() / "set.json";
  const auto entry_of = [&](std::size_t kernel) {
    const auto& record = release.kernels()[kernel];
    return R"({"name":")" + record.name + R"(","pack":")" + release.manifest().packs[0].name +
           R"(","sha256":")" + record.sha256.hex() + R"(","size":)" +
           std::to_string(record.size_bytes) + "}";
  };
  const auto write_set = [&](const std::string& manifests, const std::string& kernels) {
    std::ofstream(set) << R"({"schema":"cubist.working_set","schema_version":1,"manifests":[)"
                       << manifests << R"(],"kernels":[)" << kernels << "]}";
  };
  const std::string from = '"' + manifest + '"';

  write_set(from, entry_of(2) + "," + entry_of(0));
  const ToolRun run = fetch({"--working-set", set, "--json"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("\"fetched\": 2"));
  CHECK(release.in_store(0));
  CHECK_FALSE(release.in_store(1));
  CHECK(release.in_store(2));
  const ToolRun alone = run_tool({"fetch", "--working-set", set, "--store", store()});
  CAPTURE(alone.err);
  CHECK(alone.exit_code == 0);
  CHECK_THAT(alone.out, Contains("0 fetched, 2 present, 0 failed; 0 requests"));

  struct Row {
    std::string manifests, kernels, phrase;
  };
  auto unknown = entry_of(1);
  unknown.replace(unknown.find(release.kernels()[1].sha256.hex()), 64, std::string(64, 'a'));
  auto resized = entry_of(1);
  resized.replace(resized.rfind(':'), std::string::npos, ":7}");
  const std::vector<Row> rows{
      {from, entry_of(0) + "," + unknown, "is not in manifest"},
      {from + ",\"other\"", unknown, "none of its 1 kernels"},
      {from, resized, "has 7 bytes here and"},
      {from, entry_of(0) + "," + entry_of(0), "listed twice"},
      {from, R"({"name":"x","pack":"y","size":5})", "/kernels/0/sha256: the key is missing"}};
  for (const Row& row : rows) {
    write_set(row.manifests, row.kernels);
    const ToolRun refused = fetch({"--working-set", set});
    INFO(refused.out << refused.err);
    CHECK(refused.exit_code != 0);
    CHECK_THAT(refused.err, Contains("set.json") && Contains(row.phrase));
    CHECK(release.count_store_files() == 2);
  }
  write_set("\"one\",\"two\"", entry_of(0));
  const ToolRun several = run_tool({"fetch", "--working-set", set, "--store", store()});
  CHECK(several.exit_code == 2);
  CHECK_THAT(several.err, Contains("names 2 manifests: one, two; say which with --manifest"));
}

TEST_CASE_METHOD(Cli, "what is asked for wrongly is a usage error that helps") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  struct Row {
    std::vector<std::string> arguments;
    const char* phrase;
  };
  const std::vector<Row> rows{
      {{}, "nothing to fetch"},
      {{"--kernel", "kernel"}, "3 names contain it"},
      {{"--kernel", "unknown"}, "no kernel 'unknown'"},
      {{"--sha256", "abc"}, "64 hexadecimal digits"},
      {{"--sha256", std::string(64, '0')}, "no kernel with sha256"},
      {{"--all", "--arch", "sm_banana"}, "--arch sm_banana"},
      {{"--all", "--arch", "sm_50"}, "no kernels for sm_50"},
      {{"--all", "--source", "/no/such/place"}, "No such file"},
      {{"--all", "--source", "ftp://h/x"}, "kind that is not known"},
      {{"--all", "--source", "pip:pack"}, "NAME==VERSION"},
      {{"--all", "--unknown-flag"}, "unknown-flag"},
  };
  for (const Row& row : rows) {
    const ToolRun run = fetch(row.arguments);
    INFO(run.out << run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Contains(row.phrase));
  }
  CHECK_FALSE(fs::exists(store()));
}

TEST_CASE_METHOD(Cli, "bad input: each a named error, its exit code, nothing in the store") {
  const MischiefServer server(release.tree());
  const auto tree = [&](const char* behaviour) {
    return Source{Source::Kind::kHttp, server.url(behaviour), MadeRelease::kPrefix};
  };
  const auto file_wheel = [&](const char* name, const std::vector<std::uint8_t>& bytes) {
    write_bytes(release.tree() + "/" + name, bytes);
    return Source{Source::Kind::kZip, release.tree() + "/" + name, MadeRelease::kPrefix};
  };
  auto truncated = read_bytes(release.wheel());
  truncated.resize(truncated.size() - 100);
  auto lying = read_bytes(release.wheel());
  lying[lying.size() - 6] ^= 0x40;  // where the directory begins
  const std::string html = "<!DOCTYPE html><html><body>log in</body></html>";
  struct Row {
    const char* name;
    Source source;
    int exit_code;
    const char* phrase;
  };
  const std::vector<Row> rows{
      {"truncated zip", file_wheel("cut.whl", truncated), 4, "zip"},
      {"lying zip", file_wheel("lie.whl", lying), 4, "zip"},
      {"empty zip", file_wheel("empty.whl", {}), 4, "zip"},
      {"HTML in place of a zip", file_wheel("page.whl", {html.begin(), html.end()}), 4, "zip"},
      {"wrong hash", tree("wrong"), 4, "sha256 mismatch"},
      {"empty file", tree("empty"), 4, "the file is empty"},
      {"HTML instead of a cubin", tree("html"), 4, "HTML page"},
      {"HTML sent as data", tree("html-as-data"), 4, "HTML"},
      {"Git LFS pointer", tree("lfs"), 4, "Git LFS pointer"},
      {"zeros at the end", tree("zeros"), 4, "ends in zeros"},
      {"file too short", tree("short"), 4, "truncated"},
      {"file too long", tree("long"), 4, "announces"},
      {"forbidden", tree("403"), 5, "403 Forbidden"},
      {"not there", tree("404"), 5, "404 Not Found"},
      {"stalls", tree("stall"), 5, "stalled"},
      {"truncated transfer", tree("truncate"), 5, "(2 tries)"},
      {"server fault", tree("500"), 5, "500 Internal Server Error"},
      {"unreadable folder", {Source::Kind::kFolder, release.tree() + "/none", ""}, 6, "none"},
      {"wheel that is not there", {Source::Kind::kZip, "none.whl", ""}, 6, "none.whl"},
  };
  for (const Row& row : rows) {
    set_source(row.source);
    const ToolRun run = fetch({"--kernel", "kernel_00000"});
    INFO(row.name << ": " << run.err);
    CHECK(run.exit_code == row.exit_code);
    CHECK_THAT(run.err, Contains(row.phrase) && Contains("kernel_00000"));
    CHECK(release.count_store_files() == 0);
    CHECK(release.count_unfinished_files() == 0);
  }
}

TEST_CASE_METHOD(Cli, "bad manifests end with 8 before anything is fetched") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  auto text = read_bytes(manifest);
  std::string json(text.begin(), text.end());
  const std::size_t at = json.find("\"sha256\":\"") + 10;
  SECTION("an empty sha256") { json.erase(at, 64); }
  SECTION("no JSON") { json = "<html>"; }
  SECTION("truncated") { json.resize(json.size() / 2); }
  std::ofstream(manifest) << json;
  const ToolRun run = fetch({"--all"});
  CHECK(run.exit_code == 8);
  CHECK_THAT(run.err, Contains("manifest.json"));
  CHECK_FALSE(fs::exists(store()));
}

TEST_CASE_METHOD(Cli, "a store that cannot be made ends with 6, offline and missing with 7") {
  const MischiefServer server(release.tree());
  set_source({Source::Kind::kHttp, server.url("ok"), MadeRelease::kPrefix});
  const ToolRun offline = fetch({"--all", "--offline"});
  CHECK(offline.exit_code == 7);
  CHECK_THAT(offline.err, Contains("offline"));
  CHECK(server.count_requests() == 0);
  std::ofstream(release.scratch() / "file") << "x";
  const ToolRun blocked = fetch({"--all", "--store", release.scratch() / "file/store"});
  CHECK(blocked.exit_code == 6);
  CHECK_THAT(blocked.err, Contains("CUBIST_STORE"));
}

TEST_CASE_METHOD(Cli, "a second fetch makes no request and writes nothing") {
  const MischiefServer server(release.tree());
  set_source({Source::Kind::kHttp, server.url("ok"), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all"}).exit_code == 0);
  const std::size_t before = server.count_requests();
  const auto stamp = fs::last_write_time(store());
  const ToolRun again = fetch({"--all"});
  CHECK_THAT(again.out, Contains("0 fetched, 3 present, 0 failed; 0 requests"));
  CHECK(server.count_requests() == before);
  CHECK(fs::last_write_time(store()) == stamp);
}

TEST_CASE_METHOD(Cli, "Ctrl-C ends with 130 and leaves nothing that is not complete") {
  const MischiefServer server(release.tree());
  set_source({Source::Kind::kHttp, server.url("stall"), MadeRelease::kPrefix});
  // "exec", so that the signal reaches the tool and not the shell.
  const pid_t tool = ::fork();
  REQUIRE(tool >= 0);
  if (tool == 0) {
    const std::string command = std::string("exec ") + CUBIST_TOOL + " fetch -m " + manifest +
                                " --store " + store() + " --all 2>" +
                                (release.scratch() / "output");
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  while (server.count_requests() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(tool, SIGINT);
  int state = 0;
  ::waitpid(tool, &state, 0);
  CHECK(WIFEXITED(state));
  CHECK(WEXITSTATUS(state) == 130);
  CHECK_THAT(cubist::test::file_text(release.scratch() / "output"),
             Contains("interrupted after 0 of 3 files; run the same command again"));
  CHECK(release.count_store_files() == 0);
  CHECK(release.count_unfinished_files() == 0);
}

TEST_CASE_METHOD(Cli,
                 "verify tells whole, broken and missing apart, and repairs just the broken one") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all"}).exit_code == 0);
  CHECK(verify({}).exit_code == 0);
  CHECK(verify({"-m", manifest}).exit_code == 0);

  damage(1);
  const ToolRun broken = verify({});
  CHECK(broken.exit_code == 4);
  CHECK_THAT(broken.out, Contains("broken: sha256 mismatch for '" + entry(1) + "'") &&
                             Contains("3 entries hashed") && Contains("1 broken"));
  CHECK_THAT(broken.err, Contains("--repair"));
  CHECK_THAT(verify({"-m", manifest, "--json"}).out, Contains(release.kernels()[1].sha256.hex()));

  const ino_t first = inode(entry(0));
  const ino_t second = inode(entry(1));
  const ToolRun repaired = verify({"-m", manifest, "--repair"});
  CHECK(repaired.exit_code == 0);
  CHECK_THAT(repaired.out, Contains("1 fetched again") && StartsWith("repaired: " + entry(1)) &&
                               !Contains("broken: "));
  CHECK(repaired.err.empty());
  CHECK(inode(entry(0)) == first);
  CHECK(inode(entry(1)) != second);
  CHECK(verify({"-m", manifest}).exit_code == 0);

  fs::remove(entry(2));
  CHECK(verify({}).exit_code == 0);
  const ToolRun missing = verify({"-m", manifest});
  CHECK(missing.exit_code == 7);
  CHECK_THAT(missing.out, Contains("missing: kernel_00002"));
  CHECK_THAT(missing.err, Contains("--kernel NAME") && Contains("--working-set FILE") &&
                              Contains("'cubist fetch --manifest " + manifest + " --store " +
                                       store() + " --all' gets them"));
  CHECK(run_tool({"fetch", "--manifest", manifest, "--store", store(), "--all"}).exit_code == 0);
  CHECK(verify({"-m", manifest}).exit_code == 0);
}

TEST_CASE_METHOD(Cli, "fetch warns once of a broken entry that it replaces") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all"}).exit_code == 0);
  damage(1);
  const ToolRun run = fetch({"--kernel", "kernel_00001"});
  CHECK(run.exit_code == 0);
  const std::size_t first = run.err.find("broken store entry");
  REQUIRE(first != std::string::npos);
  CHECK(run.err.find("broken store entry", first + 1) == std::string::npos);
}

TEST_CASE_METHOD(Cli, "verify --working-set looks at the set's kernels and no other") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  const std::string set = release.scratch() / "set.json";
  const auto& record = release.kernels()[1];
  std::ofstream(set) << R"({"schema":"cubist.working_set","schema_version":1,"manifests":[")"
                     << manifest << R"("],"kernels":[{"name":")" << record.name << R"(","pack":")"
                     << release.manifest().packs[0].name << R"(","sha256":")" << record.sha256.hex()
                     << R"(","size":)" << record.size_bytes << "}]}";
  const ToolRun missing = verify({"--working-set", set});
  CHECK(missing.exit_code == 7);
  CHECK_THAT(missing.err, Contains("1 kernels are missing; 'cubist fetch --working-set " + set +
                                   " --store " + store() + "' gets them"));
  REQUIRE(run_tool({"fetch", "--working-set", set, "--store", store()}).exit_code == 0);
  const ToolRun whole = verify({"--working-set", set, "-m", manifest});
  CHECK(whole.exit_code == 0);
  CHECK_THAT(whole.out, Contains("1 entries hashed"));
  damage(1);
  CHECK(verify({"--working-set", set}).exit_code == 4);
  CHECK_THAT(verify({"--working-set", set, "--repair", "--json"}).out,
             Contains("\"state\": \"repaired\"") && Contains("\"repaired\": 1"));
  CHECK(verify({"--working-set", set}).exit_code == 0);
  CHECK(verify({"--working-set", set + ".none"}).exit_code != 0);
}

TEST_CASE_METHOD(Cli, "verify says that no store is there") {
  const ToolRun run = verify({});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, StartsWith("no store is at '" + store() + "': nothing was checked"));
  CHECK_THAT(verify({"--json"}).out, Contains("\"exists\": false"));
  CHECK_FALSE(fs::exists(store()));
}

TEST_CASE_METHOD(Cli, "verify --deep finds what no hash can: a file that is no cubin at all") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all"}).exit_code == 0);
  const ToolRun deep = verify({"-m", manifest, "--deep"});
  CHECK(deep.exit_code == 4);
  CHECK_THAT(deep.out, Contains("3 broken") && Contains("compared with the manifest"));
  CHECK_THAT(verify({"--deep"}).out, Contains("name a --manifest or --working-set"));
  const ToolRun repaired = verify({"-m", manifest, "--deep", "--repair"});
  CHECK(repaired.exit_code == 4);
  CHECK_THAT(repaired.out, Contains("broken: ") && !Contains("repaired: "));
}

TEST_CASE_METHOD(Cli, "a broken entry that no manifest knows is removed by --repair") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all"}).exit_code == 0);
  damage(0);
  std::ofstream(store() + "/sha256/notes.txt") << "mine";
  fs::create_directories(store() + "/sha256/zz");
  std::ofstream(store() + "/sha256/zz/notes.txt") << "mine";
  const ToolRun run = verify({"--repair"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("removed: " + entry(0)) && !Contains("broken: "));
  CHECK_THAT(run.out, Contains("not an entry: " + store() + "/sha256/zz/notes.txt"));
  CHECK_FALSE(fs::exists(entry(0)));
  CHECK(fs::exists(entry(1)));
  CHECK(fs::exists(store() + "/sha256/notes.txt"));
}

TEST_CASE_METHOD(Cli, "a package index of pip's own configuration serves a wheel by ranges") {
  if (!Nginx::installed()) {
    WARN("nginx is not installed: not tested");
    return;
  }
  set_source({Source::Kind::kPip, "Pack==1.0", MadeRelease::kPrefix});
  const std::string index = release.tree() + "/simple/pack/";
  const bool html = GENERATE(false, true);
  const std::string page =
      html ? std::string("<a href='../../") + MadeRelease::kWheel + "'>wheel</a>"
           : std::string(R"({"files":[{"filename":")") + MadeRelease::kWheel +
                 R"(","url":"../../)" + MadeRelease::kWheel + R"(","hashes":{}}]})";
  write_bytes(index + "index.page", {page.begin(), page.end()});
  const Nginx nginx(release.tree(),
                    std::string("location /simple/ { index index.page; default_type ") +
                        (html ? "text/html" : "application/vnd.pypi.simple.v1+json") + "; }");
  const Environment environment(Environment::Values{{"PIP_CONFIG_FILE", "/dev/null"},
                                                    {"PIP_INDEX_URL", nginx.url() + "/simple"},
                                                    {"PIP_EXTRA_INDEX_URL", ""},
                                                    {"PIP_FIND_LINKS", ""},
                                                    {"no_proxy", "127.0.0.1"},
                                                    {"NO_PROXY", "127.0.0.1"}});
  const ToolRun run = fetch({"--kernel", "kernel_00002"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(release.in_store(2));
  CHECK_THAT(run.out, Contains("3 requests"));
  const ToolRun second = fetch({"--kernel", "kernel_00001"});
  CHECK_THAT(second.out, Contains("2 requests"));
  set_source({Source::Kind::kPip, "Pack==2.0", MadeRelease::kPrefix});
  const ToolRun none = fetch({"--kernel", "kernel_00000"});
  CHECK(none.exit_code == 5);
  CHECK_THAT(none.err, Contains("lists no wheel of pack 2.0; it has 1.0"));
}

TEST_CASE_METHOD(Cli,
                 "status says what is there and, offline, what is missing, without a request") {
  const MischiefServer server(release.tree());
  set_source({Source::Kind::kHttp, server.url("ok"), MadeRelease::kPrefix});
  const auto status = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"status", "--store", store(), "-m", manifest});
    return run_tool(more);
  };
  CHECK(status({}).exit_code == 0);
  CHECK_FALSE(fs::exists(store()));
  REQUIRE(fetch({"--kernel", "kernel_00001"}).exit_code == 0);
  const std::size_t requests = server.count_requests();
  const ToolRun part = status({"--offline"});
  CHECK(part.exit_code == 7);
  CHECK_THAT(part.out, Contains("1 served by " + store()) && Contains("missing: kernel_00000"));
  REQUIRE(fetch({"--all"}).exit_code == 0);
  CHECK(status({"--offline"}).exit_code == 0);
  CHECK_THAT(status({"--json"}).out, Contains("\"complete\": true"));
  CHECK(server.count_requests() == requests + 2);
}

TEST_CASE_METHOD(Cli, "gc shrinks the store to the cap and keeps what a file pins") {
  set_source({Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all"}).exit_code == 0);
  const auto gc = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"gc", "--store", store()});
    return run_tool(more);
  };
  std::ofstream(release.scratch() / "pins") << release.kernels()[1].sha256.hex() << "  kernel\n";
  std::ofstream(release.scratch() / "none") << "no digest in here\n";
  CHECK(gc({"--max-size", "much"}).exit_code == 2);
  CHECK(gc({"--max-size", "1", "--pin", release.scratch() / "none"}).exit_code == 2);
  CHECK(gc({"--max-size", "1", "--pin", release.scratch() / "absent"}).exit_code == 2);
  CHECK_THAT(gc({"--max-size", "60kB", "--dry-run"}).out, Contains("2 of 3 entries would go"));
  CHECK(release.count_store_files() == 3);
  CHECK(gc({"--max-size", "0", "--pin", release.scratch() / "pins"}).exit_code == 0);
  CHECK(release.count_store_files() == 1);
  CHECK(release.in_store(1));
}

TEST_CASE_METHOD(Cli, "fetch writes counters for a scraper") {
  const MischiefServer server(release.tree());
  set_source({Source::Kind::kHttp, server.url("ok"), MadeRelease::kPrefix});
  REQUIRE(fetch({"--all", "--metrics", release.scratch() / "cubist.prom"}).exit_code == 0);
  CHECK_THAT(
      cubist::test::file_text(release.scratch() / "cubist.prom"),
      Contains("cubist_files_fetched_total 3\n") && Contains("cubist_http_requests_total 3\n"));
}
