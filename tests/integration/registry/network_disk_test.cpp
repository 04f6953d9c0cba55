#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "support/environment.h"
#include "support/made_release.h"
#include "support/tool.h"

namespace fs = std::filesystem;
using Catch::Contains;
using cubist::Source;
using cubist::test::Environment;
using cubist::test::MadeRelease;
using cubist::test::run_tool;
using cubist::test::ToolRun;

namespace {

/// Runs the tool with calls of the C library made to fail (tests/support/fault_shim.c).
struct Faulty {
  MadeRelease release{6, 20'000};
  std::string manifest;

  Faulty() {
    release.set_sources({{Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix}});
    manifest = release.write_manifest_file();
  }

  ToolRun run(const std::string& faults, std::vector<std::string> arguments) const {
    const Environment environment(
        Environment::Values{{"LD_PRELOAD", CUBIST_FAULT_SHIM},
                            {"CUBIST_TEST_FAULTS", faults},
                            {"ASAN_OPTIONS", "verify_asan_link_order=0"}});
    arguments.insert(arguments.end(), {"-m", manifest, "--store", release.store_root()});
    return run_tool(arguments);
  }
  ToolRun fetch(const std::string& faults) const { return run(faults, {"fetch", "--all"}); }
  std::string entry(std::size_t kernel) const {
    return cubist::entry_path(release.store_root(), release.kernels()[kernel].sha256);
  }
  void check_complete() const {
    for (std::size_t i = 0; i < release.kernels().size(); ++i) CHECK(release.in_store(i));
    CHECK(release.count_store_files() == release.kernels().size());
    CHECK(release.count_store_files("tmp") == 0);
  }
};

std::string fault(const std::string& call, int error, const std::string& part = "store",
                  int nth = 0) {
  return call + ":" + std::to_string(error) + ":" + part + ":" + std::to_string(nth);
}

}  // namespace

TEST_CASE_METHOD(Faulty, "where locks do not work, fetching goes on without them") {
  const int error = GENERATE(ENOLCK, ENOSYS, EINVAL, EOPNOTSUPP);
  const ToolRun done = fetch(fault("fcntl", error) + "," + fault("flock", error));
  INFO(done.err);
  CHECK(done.exit_code == 0);
  const std::size_t warned = done.err.find("cannot be locked");
  CHECK(warned != std::string::npos);
  CHECK(done.err.find("cannot be locked", warned + 1) == std::string::npos);
  check_complete();
}

TEST_CASE_METHOD(Faulty,
                 "where files cannot be renamed without replacing, links or renames stand in") {
  std::string faults = fault("renameat2", GENERATE(EINVAL, ENOSYS));
  if (GENERATE(false, true)) faults += "," + fault("link", EPERM);
  const ToolRun done = fetch(faults);
  INFO(faults << done.err);
  CHECK(done.exit_code == 0);
  check_complete();
}

TEST_CASE_METHOD(Faulty, "where the file system cannot be synced as a whole, each file is") {
  const ToolRun done = fetch(fault("syncfs", ENOSYS));
  CHECK(done.exit_code == 0);
  check_complete();
}

TEST_CASE_METHOD(Faulty, "a stale handle is opened again by path, and named if it stays stale") {
  REQUIRE(fetch("").exit_code == 0);
  const std::string part = release.kernels()[2].sha256.hex();
  CHECK(run(fault("open", ESTALE, part, 1), {"fetch", "--kernel", "kernel_00002"}).exit_code == 0);
  CHECK(run(fault("open", ESTALE, part, 1), {"verify"}).exit_code == 0);
  const ToolRun stale = run(fault("open", ESTALE, part), {"fetch", "--kernel", "kernel_00002"});
  CHECK(stale.exit_code == 6);
  CHECK_THAT(stale.err, Contains(entry(2)) && Contains("Stale file handle"));
  check_complete();
}

TEST_CASE_METHOD(Faulty,
                 "a disk that cannot be read is named, not taken for a missing or broken file") {
  REQUIRE(fetch("").exit_code == 0);
  const std::string part = release.kernels()[2].sha256.hex();
  const ToolRun verify = run(fault("pread", EIO, part), {"verify"});
  CHECK(verify.exit_code == 6);
  CHECK_THAT(verify.out, Contains(entry(2)) && Contains("Input/output error"));
  const ToolRun denied = run(fault("open", EACCES, part), {"fetch", "--all"});
  CHECK(denied.exit_code == 6);
  CHECK_THAT(denied.err, Contains("Permission denied"));
  check_complete();
}

TEST_CASE_METHOD(Faulty, "cleaning up never fails a fetch") {
  fs::create_directories(release.store_root() + "/tmp");
  std::ofstream(release.store_root() + "/tmp/1-00.part") << "left by a dead writer";
  const ToolRun done = fetch(fault("unlink", EBUSY));
  CHECK(done.exit_code == 0);
  for (std::size_t i = 0; i < release.kernels().size(); ++i) CHECK(release.in_store(i));
  REQUIRE(fetch("").exit_code == 0);
  fs::remove(entry(0));
  REQUIRE(fetch("").exit_code == 0);
  check_complete();
}

TEST_CASE_METHOD(Faulty, "a write that fails is named, and nothing is left of it") {
  struct Row {
    const char* call;
    int error;
    const char* phrase;
  };
  const auto row = GENERATE(values<Row>({
      {"write", ENOSPC, "No space left on device"},
      {"write", EDQUOT, "Disk quota exceeded"},
      {"write", EIO, "Input/output error"},
      {"syncfs", EIO, "Input/output error"},
      {"syncfs", ENOSPC, "No space left on device"},
      {"fchmod", EPERM, "Operation not permitted"},
      {"mkdir", EACCES, "Permission denied"},
      {"mkdir", ENOSPC, "No space left on device"},
      {"renameat2", EIO, "Input/output error"},
      {"renameat2", EDQUOT, "Disk quota exceeded"},
  }));
  std::string faults = fault(row.call, row.error);
  // How many files share a sync depends on how they come; few are synced one by one.
  if (row.call == std::string("syncfs")) faults += "," + fault("fsync", row.error);
  const ToolRun failed = fetch(faults);
  INFO(row.call << ": " << failed.err);
  CHECK(failed.exit_code == 6);
  CHECK_THAT(failed.err,
             Contains(row.phrase) && Contains(release.store_root()) && Contains("CUBIST_STORE"));
  CHECK(release.count_store_files("tmp") == 0);
  std::size_t whole = 0;  // what was complete before stays
  for (std::size_t i = 0; i < release.kernels().size(); ++i) whole += release.in_store(i) ? 1 : 0;
  CHECK(release.count_store_files() == whole);
  CHECK(whole < release.kernels().size());
  CHECK(fetch("").exit_code == 0);
  check_complete();
}
