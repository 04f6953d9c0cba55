#include "presets/library.h"

#include <string>

#include "base/file.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"

using namespace cubist;
using namespace cubist::presets;

namespace {

const std::string kFolder = CUBIST_SOURCE_DIR "/data/presets";

void write(const std::string& path, std::string_view text) {
  REQUIRE(write_file_atomically(path, text));
}

}  // namespace

TEST_CASE("the presets that come with the project are well formed and name their sources") {
  const auto library = Library::load(kFolder, {});
  if (!library) FAIL(library.error().message());
  CHECK(library->models().size() >= 25);
  CHECK(library->devices().size() >= 10);
  for (const ModelPreset& model : library->models()) {
    INFO(model.name);
    CHECK_FALSE(model.sources.empty());
    CHECK((model.max_kv_len > 0 || !model.unsure.empty()));
    CHECK((!model.dtypes_kv.empty() || !model.unsure.empty()));
  }
  for (const DevicePreset& device : library->devices()) {
    INFO(device.profile.name);
    CHECK_FALSE(device.sources.empty());
    CHECK(device.profile.max_smem_optin >= 99 * 1024);
  }
}

TEST_CASE("presets are found by name or alias, in any case") {
  const auto library = Library::load(kFolder, {});
  REQUIRE(library);
  CHECK(library->find_model("GPT-OSS-120B")->attention.size() == 2);
  CHECK(library->find_model("openai/gpt-oss-120b")->name == "gpt-oss-120b");
  CHECK(library->find_device("B200")->profile.num_sms == 148);
  CHECK(library->find_device("b200")->profile.sm == 100);
  const auto missing = library->find_model("gpt-oss-12b");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == StatusCode::kNotFound);
  CHECK(missing.error().message().find("gpt-oss-120b") != std::string::npos);
}

TEST_CASE("a user's file adds presets and hides those of the same name") {
  const test::Scratch scratch;
  write(scratch / "mine.json",
        R"({"schema":"cubist.devices","schema_version":1,"devices":[
            {"name":"b200","sm":100,"num_sms":144,"max_smem_optin":232448},
            {"name":"lab","sm":100,"num_sms":100,"max_smem_optin":232448}]})");
  const auto library = Library::load(kFolder, {scratch / "mine.json"});
  REQUIRE(library);
  CHECK(library->find_device("b200")->profile.num_sms == 144);
  CHECK(library->find_device("lab")->profile.num_sms == 100);

  write(scratch / "odd.json", R"({"schema":"cubist.manifest"})");
  const auto odd = Library::load(kFolder, {scratch / "odd.json"});
  REQUIRE_FALSE(odd);
  CHECK(odd.error().message().find("cubist.models or cubist.devices") != std::string::npos);
  CHECK_FALSE(Library::load(kFolder, {scratch / "none.json"}));
  CHECK_FALSE(Library::load(scratch.path(), {}));
}

TEST_CASE("a model may be a config.json or the folder that holds it") {
  const auto library = Library::load(kFolder, {});
  REQUIRE(library);
  const test::Scratch scratch;
  write(scratch / "config.json",
        R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":8,
            "num_key_value_heads":2,"head_dim":64})");
  CHECK(library->resolve_model(scratch.path())->attention.at(0).num_q_heads == 8);
  CHECK(library->resolve_model(scratch / "config.json")->attention.at(0).head_dim_qk == 64);
  CHECK(library->resolve_model("llama-3.1-8b")->attention.at(0).num_q_heads == 32);
  const auto missing = library->resolve_model(scratch / "other.json");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == StatusCode::kNotFound);
  CHECK_FALSE(library->resolve_model("no-such-model"));
}

TEST_CASE("the folder of the presets can be named by the environment") {
  const test::Environment set(test::Environment::Values{{"CUBIST_PRESETS", "/somewhere"}});
  CHECK(default_preset_folder() == "/somewhere");
  const test::Environment unset(test::Environment::Values{{"CUBIST_PRESETS", std::nullopt}});
  CHECK(default_preset_folder().find("share/cubist/presets") != std::string::npos);
}
