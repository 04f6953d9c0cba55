#include "oci/staged_bundle.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "support/catch.h"
#include "support/scratch.h"
#include "support/synthetic.h"

using cubist::Sha256;
using cubist::StatusCode;
using cubist::oci::PieceSink;
using cubist::oci::Progress;
using cubist::oci::StagedBundle;
using cubist::test::Scratch;
using cubist::test::synthetic_bytes;

namespace {

constexpr std::uint64_t kFileBytes = 4 << 20;
constexpr std::uint64_t kPiece = 1 << 20;

std::shared_ptr<StagedBundle> open(const std::string& path, std::uint64_t bytes = kFileBytes) {
  auto file = StagedBundle::open(path, bytes, nullptr);
  REQUIRE(file);
  return *file;
}

}  // namespace

TEST_CASE("what a stopped writer left is found again, and no more is believed than was written") {
  const Scratch scratch;
  const std::string path = scratch / "staged";
  const auto bytes = synthetic_bytes(1, kPiece);
  const std::span<const std::uint8_t> half(bytes.data(), kPiece / 2 + 1000);
  REQUIRE(open(path)->write(kPiece, half));
  const auto again = open(path);
  CHECK(again->filled(0, kPiece) == 0);
  CHECK(again->filled(2 * kPiece, kPiece) == 0);
  const std::uint64_t have = again->filled(kPiece, kPiece);
  CHECK(have <= half.size());
  Progress progress({});
  PieceSink sink(*again, kPiece, have, progress);
  REQUIRE(sink.begin());
  REQUIRE(sink.write(std::span(bytes).subspan(static_cast<std::size_t>(have))));
  CHECK(sink.digest() == cubist::sha256(bytes));
  CHECK(progress.done() == kPiece - have);
  CHECK(again->filled(kPiece, kPiece) >= have);
  Sha256 whole;
  REQUIRE(again->hash(kPiece, kPiece, whole));
  CHECK(whole.finish() == cubist::sha256(bytes));
}

TEST_CASE("a sink that begins anew hashes as if nothing had come before") {
  const Scratch scratch;
  const auto file = open(scratch / "staged");
  const auto bytes = synthetic_bytes(2, kPiece);
  Progress progress({});
  PieceSink sink(*file, 0, 0, progress);
  REQUIRE(sink.begin());
  REQUIRE(sink.write(std::span(bytes).first(1000)));
  REQUIRE(sink.restart());
  REQUIRE(sink.write(bytes));
  CHECK(sink.digest() == cubist::sha256(bytes));
}

TEST_CASE("a file of another size begins anew, a link or FIFO in its place is refused") {
  const Scratch scratch;
  const std::string path = scratch / "staged";
  REQUIRE(open(path)->write(0, synthetic_bytes(3, kPiece)));
  CHECK(open(path, kFileBytes / 2)->filled(0, kPiece) == 0);
  REQUIRE(::unlink(path.c_str()) == 0);
  std::ofstream(scratch / "elsewhere") << "keep";
  REQUIRE(::symlink((scratch / "elsewhere").c_str(), path.c_str()) == 0);
  const auto link = StagedBundle::open(path, kFileBytes, nullptr);
  CHECK(link.error().code() == StatusCode::kIo);
  CHECK_THAT(link.error().message(), Catch::Contains("is a symbolic link, which is not followed") &&
                                         Catch::Contains("move or remove it"));
  REQUIRE(::unlink(path.c_str()) == 0);
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  const auto folder = StagedBundle::open(path, kFileBytes, nullptr);
  CHECK(folder.error().code() == StatusCode::kIo);
  CHECK_THAT(folder.error().message(), Catch::Contains(path + "' is a folder in the place of") &&
                                           Catch::Contains("move or remove it"));
  REQUIRE(::rmdir(path.c_str()) == 0);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(StagedBundle::open(path, kFileBytes, nullptr).error().code() == StatusCode::kIo);
  std::string kept;
  std::ifstream(scratch / "elsewhere") >> kept;
  CHECK(kept == "keep");
}

TEST_CASE("a file that has another name too is not written through") {
  const Scratch scratch;
  const std::string mine = scratch / "mine";
  const std::string path = scratch / "staged";
  std::ofstream(mine) << "not of this program";
  REQUIRE(::link(mine.c_str(), path.c_str()) == 0);
  REQUIRE(open(path)->write(0, synthetic_bytes(1, 1000)));
  std::string text;
  std::getline(std::ifstream(mine) >> std::ws, text);
  CHECK(text == "not of this program");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK(static_cast<std::uint64_t>(info.st_size) == kFileBytes);
}

TEST_CASE("a second writer waits for the first, and finds the name free when that one is done") {
  const Scratch scratch;
  const std::string path = scratch / "staged";
  const std::string target = scratch / "bundle.zip";
  auto first = open(path);
  REQUIRE(first->write(0, synthetic_bytes(4, kPiece)));
  std::shared_ptr<StagedBundle> second;
  std::thread waits([&] { second = StagedBundle::open(path, kFileBytes, nullptr).value(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  REQUIRE(first->publish(target));
  first.reset();
  waits.join();
  REQUIRE(second->write(0, synthetic_bytes(5, 100)));  // no longer the file that was published
  std::ifstream published(target, std::ios::binary);
  std::vector<char> begin(100);
  published.read(begin.data(), 100);
  const auto expected = synthetic_bytes(4, kPiece);
  CHECK(std::equal(begin.begin(), begin.end(), expected.begin(),
                   [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }));
}

TEST_CASE("waiting ends when it is asked to") {
  const Scratch scratch;
  const auto first = open(scratch / "staged");
  std::atomic<bool> cancel = true;
  CHECK(StagedBundle::open(scratch / "staged", kFileBytes, &cancel).error().code() ==
        StatusCode::kInterrupted);
}
