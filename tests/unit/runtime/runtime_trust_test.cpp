#include <filesystem>

#include "base/file.h"
#include "capi/structs.h"
#include "runtime/runtime.h"
#include "runtime/selected.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/minisign.h"
#include "support/scratch.h"

using namespace cubist;
using Catch::Matchers::Contains;
using test::Scratch;
using test::Signer;

namespace {

constexpr const char* kShipped = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";

/// The shipped decode kernels as somebody else's manifest, signed or not.
struct Rig {
  Scratch scratch;
  Signer signer;
  std::string manifest = scratch / "theirs.json";
  runtime::RuntimeOptions options;

  Rig() {
    const std::string text = *read_text_file(kShipped, 1 << 20);
    REQUIRE(write_file_atomically(manifest, text));
    options.manifests = {manifest};
    options.store_dir = scratch / "store";
    options.offline = true;
    options.trust.trusted_keys = {signer.public_line()};
    options.trust.manifest_signatures = trust::Policy::kAllow;
  }
  /// Signs a list of these kernels and has the options name it.
  void revoke(const std::vector<std::string>& digests) {
    std::string entries;
    for (const std::string& digest : digests) {
      entries += fmt::format("{}{{\"sha256\": \"{}\", \"reason\": \"wrong\"}}",
                             entries.empty() ? "" : ", ", digest);
    }
    const std::string list = scratch / "revoked.json";
    REQUIRE(write_file_atomically(
        list, R"({"schema": "cubist.revocations", "schema_version": 1, "serial": 1, "entries": [)" +
                  entries + "]}"));
    signer.sign_file(list);
    options.trust.revocations = {list};
  }
  static AttentionProblem problem() {
    AttentionProblem problem;
    problem.head_dim_qk = 64;
    problem.num_q_heads = 16;
    problem.num_kv_heads = 2;
    problem.batch = 2;
    problem.max_kv_len = 4096;
    problem.page_size = 16;
    return problem;
  }
  static DeviceProfile h200() {
    DeviceProfile device;
    device.sm = 90;
    device.num_sms = 132;
    return device;
  }
};

TEST_CASE("a runtime opens what its options trust, and nothing else") {
  Rig rig;
  CHECK(runtime::Runtime::open(rig.options));
  rig.options.trust.manifest_signatures = trust::Policy::kRefuse;
  CHECK(runtime::Runtime::open(rig.options).error().code() == StatusCode::kUntrusted);
  rig.options.manifests = {kShipped};
  CHECK(runtime::Runtime::open(rig.options));
  rig.options.manifests = {rig.manifest};
  rig.signer.sign_file(rig.manifest);
  CHECK(runtime::Runtime::open(rig.options));
  REQUIRE(write_file_atomically(rig.manifest, *read_text_file(rig.manifest, 1 << 20) + "\n"));
  rig.options.trust.manifest_signatures = trust::Policy::kAllow;
  CHECK(runtime::Runtime::open(rig.options).error().code() == StatusCode::kUntrusted);
}

TEST_CASE("a revoked kernel is neither selected nor handed out, however it is asked for") {
  Rig rig;
  auto open = runtime::Runtime::open(rig.options);
  REQUIRE(open);
  const auto chosen = (*open)->select(rig.problem(), rig.h200());
  REQUIRE(chosen);
  const KernelRecord& best = *(*chosen)->selection().best().record;
  const std::string name(best.name);
  rig.revoke({best.sha256.hex()});
  const auto barred = runtime::Runtime::open(rig.options);
  REQUIRE(barred);
  const auto next = (*barred)->select(rig.problem(), rig.h200());
  if (next) {
    CHECK((*next)->selection().best().record->sha256 != best.sha256);
    CHECK_THAT(*(*next)->explain(), Contains("barred " + name) && Contains("revoked by"));
  }
  const auto forced = (*barred)->find_kernel(name);
  REQUIRE(forced);
  const auto bytes = (*barred)->cubin(**forced);
  REQUIRE_FALSE(bytes);
  CHECK(bytes.error().code() == StatusCode::kUntrusted);
  CHECK_THAT(bytes.error().message(), Contains(name) && Contains("wrong"));
  const KernelRecord* const wanted[] = {*forced};
  CHECK((*barred)->fetch(wanted).error().code() == StatusCode::kUntrusted);
  CHECK_FALSE(std::filesystem::exists(rig.scratch / "store/sha256"));
}

TEST_CASE("a list that cannot be trusted stops the runtime from opening") {
  Rig rig;
  rig.revoke({std::string(64, 'a')});
  CHECK(runtime::Runtime::open(rig.options));
  std::filesystem::remove(rig.scratch / "revoked.json.minisig");
  CHECK_FALSE(runtime::Runtime::open(rig.options));
  std::filesystem::remove(rig.scratch / "revoked.json");
  CHECK_FALSE(runtime::Runtime::open(rig.options));
}

TEST_CASE("an older manifest is refused by the store that has seen a newer one") {
  Rig rig;
  const std::string text = *read_text_file(rig.manifest, 1 << 20);
  const auto publish = [&](int serial) {
    std::string with = text;
    with.insert(with.find("\"packs\""), fmt::format("\"serial\": {}, ", serial));
    REQUIRE(write_file_atomically(rig.manifest, with));
    rig.signer.sign_file(rig.manifest);
  };
  publish(7);
  CHECK(runtime::Runtime::open(rig.options));
  publish(6);
  CHECK(runtime::Runtime::open(rig.options).error().code() == StatusCode::kUntrusted);
  rig.options.trust.accept_older_serial = true;
  CHECK(runtime::Runtime::open(rig.options));
  rig.options.trust.accept_older_serial = false;
  rig.options.store_dir = rig.scratch / "fresh";
  CHECK(runtime::Runtime::open(rig.options));
}

TEST_CASE("a store that others can write is refused where the options say so") {
  Rig rig;
  const std::string store = rig.scratch / "store";
  std::filesystem::create_directory(store);
  std::filesystem::permissions(store, std::filesystem::perms::all);
  rig.options.trust.foreign_store = trust::Policy::kAllow;
  CHECK(runtime::Runtime::open(rig.options));
  rig.options.trust.foreign_store = trust::Policy::kRefuse;
  CHECK(runtime::Runtime::open(rig.options).error().code() == StatusCode::kUntrusted);
}

TEST_CASE("the C options: lists replace those of the environment, policies too") {
  const test::Environment environment({{"CUBIST_TRUSTED_KEYS", "RWa RWb"},
                                       {"CUBIST_REVOCATIONS", "/r.json"},
                                       {"CUBIST_MANIFEST_SIGNATURES", "refuse"},
                                       {"CUBIST_FOREIGN_STORE", "allow"}});
  const char* const manifests[] = {"m"};
  const char* const keys[] = {"RWc"};
  cubist_runtime_options c = CUBIST_RUNTIME_OPTIONS_INIT;
  c.manifests = manifests;
  c.num_manifests = 1;
  const trust::Settings from_environment = capi::from_c(c)->trust;
  CHECK(from_environment.trusted_keys == std::vector<std::string>{"RWa", "RWb"});
  CHECK(from_environment.revocations == std::vector<std::string>{"/r.json"});
  CHECK(from_environment.manifest_signatures == trust::Policy::kRefuse);
  CHECK(from_environment.foreign_store == trust::Policy::kAllow);
  CHECK_FALSE(from_environment.accept_older_serial);
  c.trusted_keys = keys;
  c.num_trusted_keys = 1;
  c.revocations = keys;  // none of them
  c.manifest_signatures = CUBIST_POLICY_ALLOW;
  c.foreign_store = CUBIST_POLICY_REFUSE;
  c.accept_older_serial = 1;
  const trust::Settings own = capi::from_c(c)->trust;
  CHECK(own.trusted_keys == std::vector<std::string>{"RWc"});
  CHECK(own.revocations.empty());
  CHECK(own.manifest_signatures == trust::Policy::kAllow);
  CHECK(own.foreign_store == trust::Policy::kRefuse);
  CHECK(own.accept_older_serial);
  CHECK(from_environment.origins.trusted_keys == "CUBIST_TRUSTED_KEYS");
  CHECK(own.origins.trusted_keys == "options.trusted_keys");
  CHECK(own.origins.foreign_store == "options.foreign_store");
  c.foreign_store = 4;
  CHECK_THAT(capi::from_c(c).error().message(), Contains("options.foreign_store is 4"));
  c.foreign_store = 0;
  c.key_statements = nullptr;
  c.num_key_statements = 2;
  CHECK_THAT(capi::from_c(c).error().message(), Contains("options.key_statements is NULL"));
}

}  // namespace
