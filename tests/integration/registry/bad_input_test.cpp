// Archives, folders, manifests and stores that are made to do harm: refused by name, nothing
// written outside the store, and nothing in it but what the manifest names.
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "support/catch.h"
#include "support/release_cli.h"
#include "support/synthetic_cubin.h"
#include "support/zip_writer.h"

namespace fs = std::filesystem;
using Catch::Contains;
using cubist::Source;
using cubist::test::MadeRelease;
using cubist::test::make_zip;
using cubist::test::ReleaseCli;
using cubist::test::ToolRun;
using cubist::test::write_bytes;
using cubist::test::ZipImage;
using cubist::test::ZipInput;

namespace {

constexpr std::size_t kKernelBytes = 20'000;

/// Names of all files below a folder, the store's own aside.
std::set<std::string> files_below(const std::string& folder, const std::string& aside) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path();
    if (!path.starts_with(aside)) names.insert(path);
  }
  return names;
}

struct Row {
  const char* what;
  std::string member;  ///< name of the member that does harm
  std::string data;
  bool deflate;
  int exit_code;
  const char* phrase;
};

void put32(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i)
    bytes[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

TEST_CASE("archives made to do harm are refused with the member's name, and nothing is written") {
  ReleaseCli cli(1, kKernelBytes);
  const auto& good = cli.release.bytes(0);
  const std::string data(good.begin(), good.end());
  const std::string path = cli.release.path(0);
  const std::string bomb(64 * 1024 * 1024, '\0');
  const std::vector<Row> rows{
      {"traversal", "../../../evil.cubin", data, false, 4, "has a '..' part"},
      {"traversal inside", "pack/../../evil.cubin", data, false, 4, "has a '..' part"},
      {"absolute", "/tmp/evil.cubin", data, false, 4, "is absolute"},
      {"backslash", "..\\evil.cubin", data, false, 4, "has a backslash"},
      {"duplicate", path, data, false, 4, "twice"},
      {"control character", "pack/\x1b[31m.cubin", data, false, 4, "control character"},
      {"bomb", path, bomb, true, 4, "kernel_00000.cubin"},
  };
  for (const Row& row : rows) {
    std::vector<ZipInput> members{{row.member, row.data, row.deflate, false, false}};
    if (row.member != path || std::string(row.what) == "duplicate") {
      members.push_back({path, data, true, false, false});
    }
    const std::string wheel = cli.release.scratch() / "bad.whl";
    write_bytes(wheel, make_zip(members).bytes);
    cli.set_source({Source::Kind::kZip, wheel, MadeRelease::kPrefix});
    const auto before = files_below(cli.release.scratch().path(), cli.release.store_root());
    const ToolRun run = cli.fetch({"--all"});
    INFO(row.what << ": " << run.err);
    CHECK(run.exit_code == row.exit_code);
    CHECK_THAT(run.err, Contains(row.phrase) && Contains("bad.whl"));
    CHECK(files_below(cli.release.scratch().path(), cli.release.store_root()) == before);
    CHECK(cli.release.count_store_files() == 0);
    CHECK(cli.release.count_store_files("tmp") == 0);
    CHECK_FALSE(fs::exists("/tmp/evil.cubin"));
  }
}

TEST_CASE("lengths that lie, in an archive or a manifest, are refused before memory is taken") {
  ReleaseCli cli(1, kKernelBytes);
  const auto& good = cli.release.bytes(0);
  ZipImage zip =
      make_zip({{cli.release.path(0), std::string(good.begin(), good.end()), true, false, false}});
  const std::string wheel = cli.release.scratch() / "lie.whl";
  const std::size_t unpacked = 24;  // offset of a size in an entry of the directory
  SECTION("a directory entry that says more") {
    put32(zip.bytes, zip.entries[0] + unpacked, 0x7fff'ffff);
  }
  SECTION("a directory entry that says less") { put32(zip.bytes, zip.entries[0] + unpacked, 10); }
  SECTION("packed size beyond the file") { put32(zip.bytes, zip.entries[0] + 20, 0x7fff'ffff); }
  SECTION("a local header somewhere else") { put32(zip.bytes, zip.entries[0] + 42, 0x7fff'fff0); }
  write_bytes(wheel, zip.bytes);
  cli.set_source({Source::Kind::kZip, wheel, MadeRelease::kPrefix});
  const ToolRun run = cli.fetch({"--all"});
  INFO(run.err);
  CHECK(run.exit_code == 4);
  CHECK_THAT(run.err, Contains("lie.whl"));
  CHECK(cli.release.count_store_files() == 0);
}

TEST_CASE("a manifest whose size lies gets nothing into the store") {
  ReleaseCli cli(1, kKernelBytes);
  std::string text = cubist::test::file_text(cli.manifest);
  const std::string field = "\"size\":" + std::to_string(kKernelBytes);
  REQUIRE(text.find(field) != std::string::npos);
  const std::string other = GENERATE("\"size\":10", "\"size\":19999", "\"size\":20001",
                                     "\"size\":18446744073709551615", "\"size\":-1", "\"size\":0");
  text.replace(text.find(field), field.size(), other);
  std::ofstream(cli.manifest) << text;
  const ToolRun run = cli.fetch({"--all"});
  INFO(other << ": " << run.err);
  CHECK((run.exit_code == 4 || run.exit_code == 8));
  CHECK(cli.release.count_store_files() == 0);
}

TEST_CASE("a folder source gives regular files alone: no device, FIFO, socket or folder is read") {
  ReleaseCli cli(1, kKernelBytes);
  const std::string file = cli.release.tree() + "/" + cli.release.path(0);
  fs::remove(file);
  SECTION("a link to a device") { fs::create_symlink("/dev/zero", file); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(file.c_str(), 0666) == 0); }
  SECTION("a folder") { fs::create_directory(file); }
  SECTION("a link to itself") { fs::create_symlink(file, file); }
  SECTION("a link to another file") { fs::create_symlink("/etc/passwd", file); }
  const ToolRun run = cli.fetch({"--all"});
  INFO(run.err);
  CHECK((run.exit_code == 4 || run.exit_code == 6));
  CHECK_THAT(run.err, Contains("kernel_00000"));
  CHECK(cli.release.count_store_files() == 0);
}

TEST_CASE("links in the store's own folders do not lead a fetch outside") {
  const ReleaseCli cli(1, kKernelBytes);
  const std::string outside = cli.release.scratch() / "outside";
  write_bytes(outside, {'m', 'i', 'n', 'e'});
  fs::create_directories(fs::path(cli.entry(0)).parent_path());
  fs::create_symlink(outside, cli.entry(0));
  CHECK(cli.fetch({"--all"}).exit_code == 0);
  CHECK(cli.release.in_store(0));
  CHECK_FALSE(fs::is_symlink(cli.entry(0)));
  CHECK(cubist::test::file_text(outside) == "mine");
}

TEST_CASE("verify names truncation, zeros, flipped bits, HTML and LFS pointers, and repairs each") {
  const ReleaseCli cli(6, kKernelBytes);
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  const auto text_of = [&](std::size_t i) {
    return std::string(cli.release.bytes(i).begin(), cli.release.bytes(i).end());
  };
  std::string zeros = text_of(1);
  zeros.replace(8'192, std::string::npos, zeros.size() - 8'192, '\0');
  std::string flipped = text_of(2);
  flipped[9'999] = static_cast<char>(flipped[9'999] ^ 4);
  cli.overwrite(0, text_of(0).substr(0, 12'345));
  cli.overwrite(1, zeros);
  cli.overwrite(2, flipped);
  cli.overwrite(3, "<!DOCTYPE html><html>please log in</html>");
  cli.overwrite(4, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 20000\n");
  const auto before = cli.inodes();
  const ToolRun found = cli.run("verify");
  CHECK(found.exit_code == 4);
  CHECK_THAT(found.out, Contains("truncated") && Contains("ends in zeros") &&
                            Contains("sha256 mismatch") && Contains("HTML") &&
                            Contains("Git LFS pointer") && Contains("5 broken"));
  for (std::size_t i = 0; i < 5; ++i) CHECK_THAT(found.out, Contains(cli.entry(i)));
  CHECK_THAT(cli.run("verify", {"--repair"}).out, Contains("5 fetched again"));
  CHECK(cli.run("verify").exit_code == 0);
  const auto after = cli.inodes();
  for (std::size_t i = 0; i < 6; ++i) CHECK((before[i] == after[i]) == (i == 5));
}

TEST_CASE("verify --repair replaces an entry that is no file, and keeps what lies in a folder") {
  const ReleaseCli cli(1, kKernelBytes);
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  const std::string entry = cli.entry(0);
  const std::string outside = cli.release.scratch() / "outside";
  fs::create_directory(outside);
  write_bytes(outside + "/mine", {'m', 'i', 'n', 'e'});
  fs::remove(entry);
  bool keeps = false;
  SECTION("an empty folder") { fs::create_directory(entry); }
  SECTION("a folder with something in it") {
    fs::create_directory(entry);
    write_bytes(entry + "/mine", {'m', 'i', 'n', 'e'});
    keeps = true;
  }
  SECTION("a link to a folder") { fs::create_directory_symlink(outside, entry); }
  SECTION("a link to itself") { fs::create_symlink(entry, entry); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(entry.c_str(), 0666) == 0); }
  const ToolRun found = cli.run("verify");
  CAPTURE(found.out, found.err);
  CHECK(found.exit_code == 4);
  CHECK_THAT(found.out, Contains("not a regular file") && !Contains("CUBIST_STORE"));
  CHECK_THAT(found.err, Contains("--repair") && !Contains("CUBIST_STORE"));
  const ToolRun repaired = cli.run("verify", {"--repair"});
  CAPTURE(repaired.out, repaired.err);
  CHECK(repaired.exit_code == 0);
  CHECK_THAT(repaired.out, Contains("repaired: " + entry));
  CHECK(cli.release.in_store(0));
  CHECK_FALSE(fs::is_symlink(entry));
  CHECK(cubist::test::file_text(outside + "/mine") == "mine");
  CHECK(fs::exists(entry + ".aside") == keeps);
  if (keeps) {
    CHECK(cubist::test::file_text(entry + ".aside/mine") == "mine");
    CHECK_THAT(repaired.err, Contains(entry + ".aside"));
  }
}

TEST_CASE("a manifest that says something else than the right bytes is not repaired by fetching") {
  ReleaseCli cli(1, kKernelBytes);
  const auto cubin = cubist::test::make_cubin().bytes;
  cubist::KernelRecord& record = cli.release.manifest().packs[0].kernels[0];
  record.sha256 = cubist::sha256(cubin);
  record.size_bytes = cubin.size();
  record.traits.arch = {90, cubist::SmArch::Kind::kSpecific};
  write_bytes(cli.release.tree() + "/" + cli.release.path(0), cubin);
  cli.set_source({Source::Kind::kFolder, cli.release.tree(), MadeRelease::kPrefix});
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  const auto before = cli.inodes();
  for (const bool repair : {false, true}) {
    std::vector<std::string> flags = {"--deep"};
    if (repair) flags.insert(flags.end(), {"--repair", "--source", cli.release.tree()});
    const ToolRun run = cli.run("verify", flags);
    CAPTURE(run.out, run.err);
    CHECK(run.exit_code == 4);
    CHECK_THAT(run.out, Contains("arch") && Contains("1 broken") && !Contains("repaired"));
    CHECK_THAT(run.err, Contains(cli.entry(0)) && Contains("manifest") && !Contains("--repair"));
  }
  CHECK(cli.inodes() == before);
}

TEST_CASE("fetch takes all kernels or some, not both") {
  const ReleaseCli cli(1, kKernelBytes);
  const std::vector<std::vector<std::string>> some = {
      {"--working-set", "ws.json"}, {"--kernel", "kernel_00000"}, {"--sha256", "00"}};
  for (std::vector<std::string> flags : some) {
    const std::string name = flags[0];
    flags.push_back("--all");
    const ToolRun run = cli.fetch(flags);
    CAPTURE(name, run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, Contains(name) && Contains("--all"));
    CHECK(cli.release.count_store_files() == 0);
  }
}
