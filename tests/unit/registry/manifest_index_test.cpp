#include "registry/manifest_index.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/log.h"
#include "manifest/write.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/large_manifest.h"
#include "support/scratch.h"

namespace fs = std::filesystem;
using cubist::FileIdentity;
using cubist::KernelIndexHead;
using cubist::Manifest;
using cubist::ManifestIndex;
using cubist::Store;

namespace {

constexpr std::size_t kKernels = 5000;

/// A store, a manifest large enough for an index, and that index.
struct Rig {
  cubist::test::Scratch scratch;
  std::string path = scratch / "large.json";
  Store store{{scratch / "store", {}}};
  ManifestIndex index{store, path, 0};
  Manifest manifest = cubist::test::large_manifest(kKernels);
  std::string text = cubist::write_manifest(manifest);

  Rig() {
    REQUIRE(text.size() > ManifestIndex::kMinManifestBytes);
    std::ofstream(path) << text;
    manifest.folder = scratch / "";
  }

  KernelIndexHead head() const {
    return {cubist::sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}),
            *cubist::file_identity(path)};
  }
  /// Puts an index there whose manifest has another description: who believes it is seen by that.
  std::string plant(const KernelIndexHead& of) const { return plant(of, index.file()); }
  std::string plant(const KernelIndexHead& of, const std::string& file) const {
    Manifest other = manifest;
    other.description = "of the index";
    const auto bytes = cubist::write_kernel_index(other, of).value();
    fs::create_directories(fs::path(file).parent_path());
    fs::remove(file);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return file;
  }
  bool believes() const {
    const auto loaded = index.load();
    REQUIRE(loaded);
    CHECK(loaded->packs == manifest.packs);
    return loaded->description == "of the index";
  }
};

std::size_t count_files(const std::string& folder) {
  std::size_t count = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("the second open of a large manifest reads its index and gives the same manifest") {
  const Rig rig;
  CHECK_FALSE(rig.index.current());
  CHECK(rig.index.load().value() == rig.manifest);
  REQUIRE(rig.index.current() == rig.index.file());
  struct stat info {};
  REQUIRE(::stat(rig.index.file().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0444);
  CHECK(rig.index.load().value() == rig.manifest);
  CHECK(count_files(rig.store.root()) == 1);
  struct stat after {};
  REQUIRE(::stat(rig.index.file().c_str(), &after) == 0);
  CHECK(after.st_ino == info.st_ino);  // a hit writes nothing
}

TEST_CASE("an index that stands for the file as it is now is used without reading the file") {
  const Rig rig;
  rig.plant(rig.head());
  CHECK(rig.believes());
}

TEST_CASE("a small manifest, a missing one and a broken one have no index") {
  const Rig rig;
  std::ofstream(rig.path) << cubist::write_manifest(cubist::test::large_manifest(3));
  CHECK(rig.index.load()->packs[0].kernels.size() == 2);
  fs::remove(rig.path);
  CHECK(rig.index.load().error().code() == cubist::StatusCode::kNotFound);
  std::ofstream(rig.path) << rig.text << "x";
  CHECK(rig.index.load().error().code() == cubist::StatusCode::kManifestInvalid);
  CHECK(count_files(rig.store.root()) == 0);
}

TEST_CASE("an index of a file that has changed since is not believed, and replaced") {
  const Rig rig;
  const KernelIndexHead now = rig.head();
  const FileIdentity& file = now.file;
  const FileIdentity stale[] = {
      {file.size_bytes + 1, file.inode, file.mtime_ns, file.ctime_ns},
      {file.size_bytes, file.inode + 1, file.mtime_ns, file.ctime_ns},
      {file.size_bytes, file.inode, file.mtime_ns - 1, file.ctime_ns},
      {file.size_bytes, file.inode, file.mtime_ns, file.ctime_ns - 1},
  };
  for (const FileIdentity& identity : stale) {
    KernelIndexHead head;  // and the hash is that of another text
    head.file = identity;
    rig.plant(head);
    CHECK_FALSE(rig.index.current());
    CHECK_FALSE(rig.believes());
    CHECK(rig.index.current());  // the right one by now
  }
  // The same size and time stamps, written in place: ctime tells.
  REQUIRE(rig.index.current());
  struct stat info {};
  REQUIRE(::stat(rig.path.c_str(), &info) == 0);
  std::fstream(rig.path) << '{';
  const timespec times[] = {info.st_atim, info.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, rig.path.c_str(), times, 0) == 0);
  CHECK_FALSE(rig.index.current());
}

TEST_CASE("a copied or touched manifest keeps its index by the hash of its text") {
  const Rig rig;
  rig.plant(rig.head());
  fs::copy_file(rig.path, rig.path + ".new");
  fs::rename(rig.path + ".new", rig.path);
  CHECK_FALSE(rig.index.current());
  CHECK(rig.believes());
  CHECK(rig.index.current());  // its identity is that of the copy by now
}

TEST_CASE("a text that was read already finds its index by its hash, and no other") {
  const Rig rig;
  rig.plant(rig.head());
  CHECK(rig.index.parse(rig.text)->description == "of the index");
  std::string other = rig.text;
  other.replace(other.find("made for a test"), 4, "Made");
  CHECK(rig.index.parse(other)->description == "Made for a test");
}

TEST_CASE("an index that others could have written is not believed") {
  const Rig rig;
  const std::string file = rig.plant(rig.head());
  for (const mode_t mode : {0664U, 0646U, 0777U}) {
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    CHECK_FALSE(rig.index.current());
  }
  REQUIRE(::chmod(file.c_str(), 0644) == 0);
  CHECK(rig.index.current());
  fs::rename(file, file + ".moved");
  fs::create_symlink(file + ".moved", file);
  CHECK_FALSE(rig.index.current());
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0644) == 0);
  CHECK_FALSE(rig.index.current());
  fs::remove(file);
  fs::create_directory(file);
  CHECK_FALSE(rig.believes());
  CHECK(rig.index.current());  // a folder in its place is put aside
}

TEST_CASE("another user's index is not believed, root's is") {
  if (::geteuid() != 0) return;
  const Rig rig;
  fs::permissions(rig.scratch.path(), fs::perms(0755));
  const std::string outcome = cubist::test::in_child([&]() -> std::string {
    const std::string roots = rig.plant(rig.head());
    if (::setuid(65534) != 0) return "setuid failed";
    const ManifestIndex mine(rig.store, rig.path, 0);
    if (mine.file() == roots) return "one name for two users";
    if (mine.current() != roots) return "root's is not used";
    return "ok";
  });
  CHECK(outcome == "ok");
  const std::string foreign = rig.plant(rig.head());
  REQUIRE(::chown(foreign.c_str(), 65534, 65534) == 0);
  CHECK_FALSE(rig.index.current());
  CHECK_FALSE(rig.believes());
}

TEST_CASE("a damaged index is passed over and written anew") {
  const Rig rig;
  const auto damage = [&](auto change) {
    const std::string file = rig.plant(rig.head());
    auto bytes = cubist::read_file(file, 1U << 30).value();
    change(bytes);
    fs::remove(file);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    CHECK_FALSE(rig.index.current());
    CHECK_FALSE(rig.believes());
    CHECK(rig.index.current());
  };
  using Bytes = std::vector<std::uint8_t>;
  damage([](Bytes& bytes) { bytes.clear(); });
  damage([](Bytes& bytes) { bytes.resize(100); });
  damage([](Bytes& bytes) { bytes.resize(bytes.size() / 2); });
  damage([](Bytes& bytes) { bytes[bytes.size() - 5] ^= 1; });
  damage([](Bytes& bytes) { bytes[300] ^= 1; });
  damage([](Bytes& bytes) { bytes[8] ^= 2; });  // another format
  damage([](Bytes& bytes) { std::fill(bytes.begin() + 4096, bytes.end(), std::uint8_t{0}); });
}

TEST_CASE("a manifest that has just changed gets no index until its time stamps are settled") {
  const Rig rig;
  const ManifestIndex careful(rig.store, rig.path);
  CHECK(careful.load().value() == rig.manifest);
  CHECK(count_files(rig.store.root()) == 0);
}

TEST_CASE("where a store cannot be written the manifest is parsed, in silence") {
  const Rig rig;
  const std::string outcome = cubist::test::in_child([&]() -> std::string {
    fs::create_directory(rig.store.root());
    if (!cubist::test::enter_mount_namespace()) return "ok";
    if (::mount("none", rig.store.root().c_str(), "tmpfs", MS_RDONLY, "size=1m") != 0) return "ok";
    std::string said;
    cubist::set_log_sink([&](cubist::LogLevel, std::string_view text) { said += text; });
    const auto loaded = rig.index.load();
    if (!loaded || *loaded != rig.manifest) return "not loaded";
    return said.empty() ? "ok" : said;
  });
  CHECK(outcome == "ok");
}

TEST_CASE("an index in a base layer serves a manifest as one's own does") {
  const Rig rig;
  const Store over({rig.scratch / "over", {rig.store.root()}});
  rig.plant(rig.head());
  const ManifestIndex layered(over, rig.path, 0);
  CHECK(layered.load()->description == "of the index");
  CHECK_FALSE(fs::exists(over.root()));
}
