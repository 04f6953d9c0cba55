#include "registry/digest_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/catch.h"
#include "support/child.h"
#include "support/scratch.h"

using cubist::DigestLocks;
using cubist::Sha256Digest;
using cubist::test::in_child;
using cubist::test::Scratch;
using Outcome = DigestLocks::Outcome;

namespace {

Sha256Digest digest(std::uint8_t number) {
  Sha256Digest made;
  made.bytes.fill(number);
  return made;
}

std::string try_in_child(const Scratch& scratch, std::uint8_t number) {
  return in_child([&]() -> std::string {
    DigestLocks locks(scratch.path());
    return locks.try_take(digest(number)) == Outcome::kTaken ? "taken" : "busy";
  });
}

}  // namespace

TEST_CASE("a digest is locked against other processes and other runs, and only that digest") {
  const Scratch scratch;
  DigestLocks locks(scratch.path());
  REQUIRE(locks.try_take(digest(1)) == Outcome::kTaken);
  REQUIRE(locks.try_take(digest(0xff)) == Outcome::kTaken);
  CHECK(try_in_child(scratch, 1) == "busy");
  CHECK(try_in_child(scratch, 0xff) == "busy");
  CHECK(try_in_child(scratch, 2) == "taken");
  DigestLocks same_process(scratch.path());
  CHECK(same_process.try_take(digest(1)) == Outcome::kBusy);
  locks.release(digest(1));
  CHECK(same_process.try_take(digest(1)) == Outcome::kTaken);
  CHECK(try_in_child(scratch, 0xff) == "busy");
}

TEST_CASE("a killed holder is succeeded at once, and the lock file keeps its inode") {
  const Scratch scratch;
  const std::string killed = in_child([&]() -> std::string {
    DigestLocks locks(scratch.path());
    if (locks.try_take(digest(1)) != Outcome::kTaken) return "busy";
    ::kill(::getpid(), SIGKILL);
    return "survived";
  });
  CHECK(killed == "killed by signal 9");
  struct stat before {};
  REQUIRE(::stat((scratch / "lock").c_str(), &before) == 0);
  CHECK(try_in_child(scratch, 1) == "taken");
  struct stat after {};
  REQUIRE(::stat((scratch / "lock").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
}

TEST_CASE("where no lock file can be made, locks are unavailable and nothing hangs") {
  DigestLocks locks("/proc/no-such-place");
  CHECK(locks.try_take(digest(1)) == Outcome::kUnavailable);
  CHECK(locks.try_take(digest(1)) == Outcome::kUnavailable);
  locks.release(digest(1));
}
