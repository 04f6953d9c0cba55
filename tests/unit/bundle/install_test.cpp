#include "bundle/install.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "bundle/verify_kernels.h"
#include "made_bundle.h"
#include "registry/store_gc.h"
#include "support/catch.h"
#include "support/scratch.h"

namespace cubist::bundle {
namespace {

namespace fs = std::filesystem;
using cubist::test::Scratch;
using test::Bytes;
using test::MadeBundle;

std::string manifest_text(const std::vector<Kernel>& kernels, const std::string& name) {
  std::string text = R"({"schema":"cubist.manifest","schema_version":1,"name":")" + name +
                     R"(","packs":[{"name":"pack","family":"trtllm_gen_fmha","revision":"none",)" +
                     R"("param_layout":"none","kernels":[)";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text += fmt::format(
        R"({}{{"name":"k{}","sha256":"{}","size":{},"arch":"sm_100f","traits":{{"dtype_q":"bf16",)"
        R"("dtype_kv":"bf16","dtype_o":"bf16","head_dim_qk":64,"tile_q":16,"tile_kv":128,)"
        R"("kernel_type":"swaps","threads":512,"smem":40000}}}})",
        i == 0 ? "" : ",", i, kernels[i].sha256.hex(), kernels[i].size_bytes);
  }
  return text + "]}]}\n";
}

/// A bundle of the made-up kernels with one manifest that names `listed` of them.
MadeBundle made_with_manifest(std::size_t listed = 3) {
  std::map<Sha256Digest, Bytes> kernels;
  Contents contents = test::made_contents(kernels);
  std::vector<Kernel> named = contents.kernels;
  named.resize(listed);
  contents.manifests = {{"made", manifest_text(named, "made"), "a signature\n"}};
  return test::make_bundle(std::move(contents), std::move(kernels));
}

Bundle opened(const MadeBundle& made) {
  auto bundle = test::open(made.file);
  if (!bundle) FAIL(bundle.error().message());
  return std::move(*bundle);
}

Store store_in(const Scratch& scratch) { return Store(StoreOptions{scratch / "store", {}}); }

std::size_t entries_in(const Scratch& scratch) {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "store/sha256", error)) {
    count += entry.is_regular_file() ? 1 : 0;
  }
  return count;
}

InstallOptions unpacking() {
  InstallOptions options;
  options.unpack = true;
  return options;
}

/// As a store of its own, which opened nothing yet, serves it.
bool serves(const Scratch& scratch, const Kernel& kernel) {
  KernelRecord record;
  record.sha256 = kernel.sha256;
  record.size_bytes = kernel.size_bytes;
  const auto cubin = store_in(scratch).open_verified(record);
  return cubin && *cubin;
}

std::string kept_path(const Scratch& scratch, const MadeBundle& made) {
  return bundle_path(scratch / "store", made.written.identity);
}

TEST_CASE("a bundle is kept as it is, and serves every kernel") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest();
  InstallOptions options;
  options.threads = 2;
  const auto first = install(opened(made), store_in(scratch), options);
  if (!first) FAIL(first.error().message());
  CHECK(first->kernels_installed == 3);
  CHECK(first->bundle_path == kept_path(scratch, made));
  CHECK(read_file(first->bundle_path, 1 << 20).value() == made.file);
  CHECK((fs::status(first->bundle_path).permissions() & fs::perms::owner_write) == fs::perms::none);
  CHECK(entries_in(scratch) == 0);
  CHECK(fs::is_empty(scratch / "store/tmp"));
  CHECK(fs::exists(scratch / "store/manifests/made.json"));
  for (const Kernel& kernel : made.contents.kernels) CHECK(serves(scratch, kernel));
  const auto second = install(opened(made), store_in(scratch), options);
  REQUIRE(second);
  CHECK(second->kernels_installed == 0);
  CHECK(second->kernels_present == 3);
}

TEST_CASE("no bundle is kept with a kernel that is wrong, and a broken one is replaced") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest();
  MadeBundle bad = made;
  const ZipMember last = opened(made).kernel_member(2);
  bad.file[static_cast<std::size_t>(last.limit_offset) - 1] ^= 1;
  const auto refused = install(opened(bad), store_in(scratch), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(refused.error().message(), Catch::Contains("b.zip") && Catch::Contains(last.name));
  CHECK_FALSE(fs::exists(scratch / "store/manifests"));
  CHECK(fs::is_empty(scratch / "store/bundles"));
  CHECK(fs::is_empty(scratch / "store/tmp"));

  REQUIRE(install(opened(made), store_in(scratch), {}));
  fs::permissions(kept_path(scratch, made), fs::perms::owner_all);
  std::ofstream(kept_path(scratch, made), std::ios::binary)
      .write(reinterpret_cast<const char*>(bad.file.data()),
             static_cast<std::streamsize>(bad.file.size()));
  const auto& kernels = made.contents.kernels;
  CHECK(std::count_if(kernels.begin(), kernels.end(),
                      [&](const Kernel& one) { return serves(scratch, one); }) == 2);
  REQUIRE(install(opened(made), store_in(scratch), {}));
  for (const Kernel& kernel : made.contents.kernels) CHECK(serves(scratch, kernel));
}

TEST_CASE(
    "where every kernel is there no bundle is kept, and where it is kept it can be unpacked") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest();
  REQUIRE(install(opened(made), store_in(scratch), unpacking()));
  const auto again = install(opened(made), store_in(scratch), {});
  REQUIRE(again);
  CHECK(again->kernels_present == 3);
  CHECK(again->bundle_path.empty());
  CHECK_FALSE(fs::exists(scratch / "store/bundles"));
  fs::remove_all(scratch / "store");
  REQUIRE(install(opened(made), store_in(scratch), {}));
  const auto unpacked = install(opened(made), store_in(scratch), unpacking());
  REQUIRE(unpacked);
  CHECK(unpacked->kernels_installed == 3);
  CHECK(entries_in(scratch) == 3);
}

/// As if it had been fetched long ago.
void age(const std::string& path) {
  const timespec old[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), old, 0) == 0);
}

bool is_old(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mtim.tv_sec == 1'600'000'000;
}

/// The same kernels under another identity.
MadeBundle made_with_other_name() {
  std::map<Sha256Digest, Bytes> kernels;
  Contents contents = test::made_contents(kernels);
  contents.manifests = {{"other", manifest_text(contents.kernels, "other"), std::nullopt}};
  return test::make_bundle(std::move(contents), std::move(kernels));
}

TEST_CASE("what an install relies on is as young as if it had brought it, and gc keeps it") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest();
  REQUIRE(install(opened(made), store_in(scratch), {}));
  const std::string kept = kept_path(scratch, made);
  SECTION("another bundle whose kernels all lie in a kept one") {
    age(kept);
    CHECK(serves(scratch, made.contents.kernels[0]));
    CHECK(is_old(kept));  // reading notes nothing
    const auto noise =
        VerifiedCubin::verify({1, 2, 3}, sha256(std::vector<std::uint8_t>{1, 2, 3}), 3, "noise");
    const std::string entry = store_in(scratch).install(noise.value()).value();
    const timespec later[2] = {{1'600'000'100, 0}, {1'600'000'100, 0}};
    REQUIRE(::utimensat(AT_FDCWD, entry.c_str(), later, 0) == 0);
    const auto second = install(opened(made_with_other_name()), store_in(scratch), {});
    REQUIRE(second);
    CHECK(second->bundle_path.empty());
    CHECK_FALSE(is_old(kept));
    GcOptions options;
    options.max_bytes = fs::file_size(kept);
    CHECK(collect_garbage(store_in(scratch), options).value().removed ==
          std::vector<std::string>{entry});
  }
  SECTION("the same bundle again") {
    age(kept);
    REQUIRE(install(opened(made), store_in(scratch), {}));
    CHECK_FALSE(is_old(kept));
  }
  SECTION("entries, and an unpacking install") {
    REQUIRE(install(opened(made), store_in(scratch), unpacking()));
    const std::string entry = entry_path(scratch / "store", made.contents.kernels[0].sha256);
    age(entry);
    age(kept);
    REQUIRE(install(opened(made_with_other_name()), store_in(scratch), unpacking()));
    CHECK_FALSE(is_old(entry));
    CHECK(is_old(kept));
    age(entry);
    fs::remove(kept);
    REQUIRE(install(opened(made_with_other_name()), store_in(scratch), {}));
    CHECK_FALSE(is_old(entry));
  }
  SECTION("a layer below is left alone") {
    age(kept);
    const Store over(StoreOptions{scratch / "top", {scratch / "store"}});
    REQUIRE(install(opened(made_with_other_name()), over, {}));
    CHECK(is_old(kept));
  }
}

TEST_CASE("a folder of bundles that is a link is not written through") {
  const Scratch scratch;
  fs::create_directories(scratch / "store");
  fs::create_directories(scratch / "victim");
  fs::create_symlink(scratch / "victim", scratch / "store/bundles");
  const MadeBundle made = made_with_manifest();
  const auto refused = install(opened(made), store_in(scratch), {});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("store/bundles"));
  CHECK(fs::is_empty(scratch / "victim"));
}

TEST_CASE("a bundle is unpacked once, and again costs nothing") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest();
  const Bundle bundle = opened(made);
  InstallOptions options = unpacking();
  options.threads = 2;
  const auto first = install(bundle, store_in(scratch), options);
  if (!first) FAIL(first.error().message());
  CHECK(first->kernels_installed == 3);
  REQUIRE(first->manifests.size() == 1);
  CHECK(first->manifests[0].path == scratch / "store/manifests/made.json");
  CHECK(read_text_file(scratch / "store/manifests/made.json", 1 << 20).value() ==
        made.contents.manifests[0].text);
  CHECK(read_text_file(scratch / "store/manifests/made.json.minisig", 100).value() ==
        "a signature\n");
  const auto second = install(bundle, store_in(scratch), options);
  REQUIRE(second);
  CHECK(second->kernels_installed == 0);
  CHECK(second->kernels_present == 3);
  CHECK(second->manifests[0].was_present);
}

TEST_CASE("a kernel that no manifest names keeps everything out") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest(2);
  const Bundle bundle = opened(made);
  const auto done = install(bundle, store_in(scratch), {});
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message(), Catch::Contains("in none of the bundle's manifests"));
  CHECK_FALSE(fs::exists(scratch / "store"));
}

TEST_CASE("each check can keep a bundle out before anything is written") {
  const MadeBundle made = made_with_manifest();
  const Bundle bundle = opened(made);
  const auto no = [] { return fail(StatusCode::kUntrusted, "no"); };
  for (int which = 0; which < 3; ++which) {
    CAPTURE(which);
    const Scratch scratch;
    InstallOptions options;
    if (which == 0) options.checks.signature = [&](const auto&) -> Status { return no(); };
    if (which == 1) {
      options.checks.manifest = [&](const auto&, const Manifest&) -> Status { return no(); };
    }
    if (which == 2) {
      options.checks.kernel = [&](const Sha256Digest&, std::string_view name) -> Status {
        return name == "k1" ? Status(no()) : Status();
      };
    }
    const auto done = install(bundle, store_in(scratch), options);
    REQUIRE_FALSE(done);
    CHECK(done.error().code() == StatusCode::kUntrusted);
    CHECK_FALSE(fs::exists(scratch / "store"));
  }
}

TEST_CASE("the signature check sees the manifest's own bytes and signature") {
  const Scratch scratch;
  const MadeBundle made = made_with_manifest();
  InstallOptions options;
  bool asked = false;
  options.checks.signature = [&](const IncomingManifest& incoming) -> Status {
    asked = true;
    CHECK(incoming.text == made.contents.manifests[0].text);
    CHECK(incoming.signature == "a signature\n");
    return {};
  };
  CHECK(install(opened(made), store_in(scratch), options));
  CHECK(asked);
}

TEST_CASE("a kernel with wrong bytes keeps the manifest out, and the right ones in") {
  const Scratch scratch;
  MadeBundle made = made_with_manifest();
  const ZipMember last = opened(made).kernel_member(2);
  made.file[static_cast<std::size_t>(last.limit_offset) - 1] ^= 1;
  const auto done = install(opened(made), store_in(scratch), unpacking());
  REQUIRE_FALSE(done);
  CHECK(done.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(done.error().message(), Catch::Contains(last.name));
  CHECK_FALSE(fs::exists(scratch / "store/manifests"));
  CHECK(entries_in(scratch) <= 2);
  CHECK(fs::is_empty(scratch / "store/tmp"));
}

TEST_CASE("an install that was stopped is finished by the next one") {
  for (const bool unpack : {false, true}) {
    const Scratch scratch;
    const MadeBundle made = made_with_manifest();
    std::atomic<bool> cancel = true;
    InstallOptions options;
    options.unpack = unpack;
    options.cancel = &cancel;
    const auto stopped = install(opened(made), store_in(scratch), options);
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().code() == StatusCode::kInterrupted);
    CHECK_FALSE(fs::exists(scratch / "store/manifests"));
    cancel = false;
    CHECK(install(opened(made), store_in(scratch), options));
    CHECK(entries_in(scratch) == (unpack ? 3 : 0));
    for (const Kernel& kernel : made.contents.kernels) CHECK(serves(scratch, kernel));
  }
}

TEST_CASE("another name is for a bundle with one manifest") {
  const Scratch scratch;
  std::map<Sha256Digest, Bytes> kernels;
  Contents contents = test::made_contents(kernels);
  contents.manifests = {{"a", manifest_text(contents.kernels, "a"), std::nullopt},
                        {"b", manifest_text(contents.kernels, "b"), std::nullopt}};
  const MadeBundle made = test::make_bundle(contents, kernels);
  InstallOptions options;
  options.rename_to = "c";
  const auto done = install(opened(made), store_in(scratch), options);
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().message(), Catch::Contains("holds 2 manifests"));
  options.rename_to.clear();
  const auto both = install(opened(made), store_in(scratch), options);
  REQUIRE(both);
  CHECK(both->manifests.size() == 2);
}

TEST_CASE("a replaced manifest takes its signature with it") {
  const Scratch scratch;
  MadeBundle made = made_with_manifest();
  REQUIRE(install(opened(made), store_in(scratch), {}));
  Contents contents = made.contents;
  contents.manifests[0].text += "\n";
  contents.manifests[0].signature.reset();
  const MadeBundle other = test::make_bundle(contents, made.kernels);
  const auto refused = install(opened(other), store_in(scratch), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(refused.error().message(), Catch::Contains("--replace"));
  InstallOptions options;
  options.replace = true;
  REQUIRE(install(opened(other), store_in(scratch), options));
  CHECK(read_text_file(scratch / "store/manifests/made.json", 1 << 20).value() ==
        contents.manifests[0].text);
  CHECK_FALSE(fs::exists(scratch / "store/manifests/made.json.minisig"));
}

TEST_CASE("verify_kernels names the first kernel that is wrong, with any number of threads") {
  MadeBundle made = made_with_manifest();
  CHECK(verify_kernels(opened(made), 3));
  std::vector<std::string> names;
  for (const std::size_t kernel : {std::size_t{2}, std::size_t{1}}) {
    const ZipMember member = opened(made).kernel_member(kernel);
    made.file[static_cast<std::size_t>(member.header_offset) + 30 + member.name.size()] ^= 0x15;
    names.push_back(member.name);
  }
  for (const unsigned threads : {1U, 3U}) {
    const Status verified = verify_kernels(opened(made), threads);
    REQUIRE_FALSE(verified);
    CHECK_THAT(verified.error().message(), Catch::Contains(names[1]));
  }
}

}  // namespace
}  // namespace cubist::bundle
