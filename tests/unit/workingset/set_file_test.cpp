#include "workingset/set_file.h"

#include <string>

#include "support/catch.h"
#include "support/published.h"
#include "workingset/classes.h"

using namespace cubist;
using namespace cubist::workingset;

namespace {

std::string error_of(const std::string& text) {
  const auto file = parse_set(text, "set.json");
  return file ? "" : file.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string file_with(const std::string& kernels) {
  return R"({"schema":"cubist.working_set","schema_version":1,"kernels":)" + kernels + "}";
}

}  // namespace

TEST_CASE("a written set is read back with every kernel") {
  Query query;
  query.device = test::shipped_presets().find_device("b200").value().profile;
  query.classes =
      make_classes(test::shipped_presets().find_model("qwen3-8b").value(), ClassOptions{}).value();
  query.batch = {{1, 16}};
  query.max_q_len = {{1, 2}};
  query.max_kv_len = {{1, 4096}};
  const auto& published = test::flashinfer_0_6_13();
  const WorkingSet set = find_working_set(published.table, query).value();
  SetInfo info;
  info.manifests = {published.manifest.name};
  info.model = "qwen3-8b";
  const std::string text = write_set(set, query, info);
  CHECK(text == write_set(set, query, info));
  const auto file = parse_set(text, "set.json");
  REQUIRE(file);
  CHECK(file->manifests == info.manifests);
  REQUIRE(file->kernels.size() == set.members.size());
  for (std::size_t i = 0; i < set.members.size(); ++i) {
    CHECK(file->kernels[i].name == set.members[i].record->name);
    CHECK(file->kernels[i].sha256 == set.members[i].record->sha256);
    CHECK(file->kernels[i].size_bytes == set.members[i].record->size_bytes);
    CHECK(file->kernels[i].pack == set.members[i].pack);
  }
}

TEST_CASE("a file that is no set is refused with its place") {
  const std::string hash(64, 'a');
  const std::string kernel = R"({"name":"k","pack":"p","size":10,"sha256":")" + hash + "\"}";
  CHECK(error_of(file_with("[" + kernel + "]")).empty());
  CHECK(error_of(file_with("[]")).empty());
  CHECK(contains(error_of("nonsense"), "not a JSON text"));
  CHECK(contains(error_of("{}"), "/schema: the key is missing"));
  CHECK(contains(error_of(R"({"schema":"cubist.manifest"})"), "says cubist.working_set"));
  CHECK(contains(error_of(file_with("{}")), "/kernels: found an object, expected an array"));
  CHECK(contains(error_of(file_with("[{}]")), "/kernels/0/name: the key is missing"));
  CHECK(contains(error_of(file_with(R"([{"name":"k","pack":"p","size":10,"sha256":"12"}])")),
                 "is no sha256"));
  CHECK(contains(
      error_of(file_with(R"([{"name":"k","pack":"p","size":-1,"sha256":")" + hash + "\"}]")),
      "/kernels/0/size: is -1"));
  CHECK(contains(error_of(file_with("[" + kernel + "," + kernel + "]")), "listed twice"));
  CHECK_FALSE(load_set("/nonexistent/set.json"));
}
