#include "manifest/parse.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "base/file.h"
#include "manifest/validate.h"
#include "manifest/write.h"
#include "sample_manifest.h"
#include "support/catch.h"

namespace cubist {

std::string test::replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

namespace {

using test::digest_text;
using test::replaced;
using test::sample_manifest;

TEST_CASE("a valid manifest gives every field and the documented defaults") {
  const Result<Manifest> parsed = parse_manifest(sample_manifest(), "m.json");
  REQUIRE(parsed);
  CHECK(parsed->name == "sample");
  CHECK(parsed->folder.empty());
  REQUIRE(parsed->packs.size() == 1);
  const Pack& pack = parsed->packs[0];
  CHECK(pack.version == "1.2.3");
  CHECK(pack.family == KernelFamily::kTrtllmGenFmha);
  CHECK(pack.revision == HeuristicRevision::kTrtllmGenFmha_0_6_13);
  REQUIRE(pack.sources.size() == 2);
  CHECK(pack.sources[0].kind == Source::Kind::kHttp);
  CHECK(pack.sources[1].kind == Source::Kind::kPip);
  CHECK(pack.sources[1].prefix == "some_cubins/fmha/");
  REQUIRE(pack.kernels.size() == 2);

  const KernelRecord& a = pack.kernels[0];
  CHECK(a.path.empty());
  CHECK(a.file() == "kernel_a.cubin");
  CHECK(a.sha256.hex() == digest_text('a'));
  CHECK(a.size_bytes == 64656);
  CHECK(to_string(a.traits.arch) == "sm_100f");
  CHECK(a.traits.dtype_k == Dtype::kE2m1);
  CHECK(a.traits.dtype_v == Dtype::kE2m1);
  CHECK(a.traits.head_dim_vo == 64);
  CHECK(a.traits.head_dim_per_cta_v == 64);
  CHECK(a.traits.step_q == 256);
  CHECK(a.traits.step_kv == 128);
  CHECK_FALSE(a.traits.groups_heads_q);
  CHECK(a.traits.qkv_layout == QkvLayout::kPagedKv);

  const KernelRecord& b = pack.kernels[1];
  CHECK(b.path == "sub/kernel_b.bin");
  CHECK(b.file() == b.path);
  CHECK(b.traits.dtype_k == Dtype::kInt8);
  CHECK(b.traits.dtype_v == Dtype::kE4m3);
  CHECK(b.traits.head_dim_per_cta_v == 256);
  CHECK(b.traits.step_q == 64);
  CHECK(b.traits.groups_heads_q);
  CHECK(b.traits.two_cta_mma);
  CHECK(b.traits.sage_block_k == 16);
}

TEST_CASE("removing any kernel line, or all, leaves a valid manifest") {
  const std::string text = sample_manifest();
  const std::size_t first = text.find("{\"name\":\"kernel_a\"");
  const std::size_t second = text.find("{\"name\":\"kernel_b\"");
  const std::size_t end = text.find("      ]\n    }\n  ]");
  std::string without_first = text;
  without_first.erase(first, second - first);
  CHECK(parse_manifest(without_first, "m.json")->packs[0].kernels.size() == 1);
  std::string without_second = text;
  without_second.erase(second - 2, end - second + 2);
  CHECK(parse_manifest(without_second, "m.json")->packs[0].kernels.size() == 1);
  std::string without_both = text;
  without_both.erase(first, end - first);
  CHECK(parse_manifest(without_both, "m.json")->packs[0].kernels.empty());
}

struct Liar {
  const char* from;
  std::string to;
  const char* place;   ///< JSON pointer the message must name
  const char* phrase;  ///< what the message must say
};

const std::vector<Liar>& liars() {
  static const std::vector<Liar> kLiars = {
      {"\"schema_version\": 1", "\"schema_version\": 3", "/schema_version",
       "reads versions 1 to 2"},
      {"\"schema_version\": 1", "\"schema_version\": 0", "/schema_version", "version 0"},
      {"\"schema_version\": 1", "\"schema_version\": -1", "/schema_version", "negative"},
      {"\"schema_version\": 1", "\"schema_version\": \"1\"", "/schema_version", "expected a whole"},
      {"\"schema_version\": 1", "\"schema_version\": 1.0", "/schema_version", "fraction"},
      {"  \"schema_version\": 1,\n", "", "/schema_version", "missing"},
      {"cubist.manifest", "other.manifest", "/schema", "no Cubist manifest"},
      {"\"name\": \"sample\"", "\"nom\": \"sample\"", "/nom", "unknown key 'nom'"},
      {"\"name\": \"sample\"", "\"a/b~\\u001b\": 1", "/a~1b~0\\x1b", "unknown key"},
      {"\"name\": \"sample\"", "\"name\": \"\"", "/name", "empty"},
      {"\"name\": \"sample\"", "\"name\": \"a b\"", "/name", "is no name"},
      {"\"name\": \"sample\"", "\"name\": \"x\", \"name\": \"y\"", "/name", "occurs twice"},
      {"\"name\": \"sample\"", "\"name\": [[[[[[", "/name", "found an array"},
      {"two kernels", "two\\u0007kernels", "/description", "control character"},
      {"\"packs\": [", "\"serial\": 0, \"packs\": [", "/serial", "out of range"},
      {"\"packs\": [", "\"serial\": -1, \"packs\": [", "/serial", "negative"},
      {"\"packs\": [", "\"serial\": 9007199254740992, \"packs\": [", "/serial", "out of range"},
      {"\"packs\": [", "\"serial\": \"7\", \"packs\": [", "/serial", "expected a whole number"},
      {"\"packs\": [", "\"serial\": 7.5, \"packs\": [", "/serial", "fraction"},
      {"\"packs\": [", "\"expires\": \"\", \"packs\": [", "/expires", "empty"},
      {"\"packs\": [", "\"expires\": \"2027-02-30\", \"packs\": [", "/expires", "no date"},
      {"\"packs\": [", "\"expires\": 2027, \"packs\": [", "/expires", "expected a string"},
      {"\"packs\": [", "\"packs\": [[", "/packs/0", "found an array"},
      {"\"packs\": [", "\"packs\": [null,", "/packs/0", "found null, expected an object"},
      {"\"packs\": [", "\"packs\": {\"x\": [", "/packs", "found an object, expected an array"},
      {"\"name\": \"pack-a\",", "", "/packs/0/name", "missing"},
      {"\"license\": \"Apache-2.0\"", "\"license\": 2", "/packs/0/license", "found a number"},
      {"\"version\": \"1.2.3\"", "\"version\": {}", "/packs/0/version", "found an object"},
      {"\"family\": \"trtllm_gen_fmha\"", "\"family\": \"fmha\"", "/packs/0/family",
       "allowed are trtllm_gen_fmha, cubist_decode or cubist_aux"},
      {"trtllm-gen-fmha-0.6.13", "trtllm-gen-fmha-9", "/packs/0/revision", "allowed are"},
      {"trtllm-gen-fmha-0.6.13", "cubist-decode-1", "/packs/0/revision", "is a revision of family"},
      {"trtllm-gen-fmha-1280", "trtllm-gen-fmha-1152", "/packs/0/param_layout", "fills"},
      {"trtllm-gen-fmha-1280", "cubist-decode-1", "/packs/0/param_layout",
       "no parameter layout of"},
      {"\"sources\": [", "\"min_driver\": \"12.8\", \"sources\": [", "/packs/0/min_driver",
       "schema_version 1 has no such key; 2 has it"},
      {"\"sources\": [", "\"min_driver\": \"12\", \"sources\": [", "/packs/0/min_driver",
       "no CUDA version such as 13.0"},
      {"\"sources\": [", "\"min_driver\": 12.8, \"sources\": [", "/packs/0/min_driver",
       "expected a string"},
      {"\"type\": \"http\"", "\"type\": \"ftp\"", "/packs/0/sources/0/type",
       "http, folder, zip or"},
      {"https://mirror", "ftp://mirror", "/packs/0/sources/0/location", "no http:// or https://"},
      {"mirror.example", "user:secret@mirror.example", "/packs/0/sources/0/location", "password"},
      {"mirror.example", "", "/packs/0/sources/0/location", "no host"},
      {"https://mirror.example/kernels/", "", "/packs/0/sources/0/location", "needs a location"},
      {"\"location\": \"https://mirror.example/kernels/\", ", "", "/packs/0/sources/0/location",
       "missing"},
      {"\"prefix\": \"fmha/\"", "\"prefix\": \"fmha\"", "/packs/0/sources/0/prefix", "end in '/'"},
      {"\"prefix\": \"fmha/\"", "\"prefix\": \"../\"", "/packs/0/sources/0/prefix", "'..' part"},
      {"\"prefix\": \"fmha/\"", "\"url\": \"\"", "/packs/0/sources/0/url",
       "type, location, prefix"},
      {"some-cubins==1.2.3", "some-cubins>=1.2.3", "/packs/0/sources/1/location", "name==version"},
      {"some-cubins==1.2.3", "--index-url==1", "/packs/0/sources/1/location", "name==version"},
      {"\"name\":\"kernel_a\",", "", "/packs/0/kernels/0/name", "missing"},
      {"\"name\":\"kernel_a\"", "\"name\":\"\"", "/packs/0/kernels/0/name", "empty"},
      {"\"name\":\"kernel_a\"", "\"name\":\"../../etc/passwd\"", "/packs/0/kernels/0/name",
       "no name"},
      {"\"name\":\"kernel_a\"", "\"name\":\"" + std::string(513, 'k') + "\"",
       "/packs/0/kernels/0/name", "513 bytes"},
      {"sub/kernel_b.bin", "../kernel_b.bin", "/packs/0/kernels/1/path", "'..' part"},
      {"sub/kernel_b.bin", "sub/../../b", "/packs/0/kernels/1/path", "'..' part"},
      {"sub/kernel_b.bin", "./b", "/packs/0/kernels/1/path", "'.' or"},
      {"sub/kernel_b.bin", "/etc/passwd", "/packs/0/kernels/1/path", "absolute"},
      {"sub/kernel_b.bin", "sub\\\\b", "/packs/0/kernels/1/path", "backslash"},
      {"sub/kernel_b.bin", "sub//b", "/packs/0/kernels/1/path", "empty part"},
      {"sub/kernel_b.bin", "sub/", "/packs/0/kernels/1/path", "empty part"},
      {"sub/kernel_b.bin", "", "/packs/0/kernels/1/path", "empty"},
      {"sub/kernel_b.bin", "sub/\\u0000b", "/packs/0/kernels/1/path", "control character"},
      {"sub/kernel_b.bin", "sub/\\u007fb", "/packs/0/kernels/1/path", "control character"},
      {"sub/kernel_b.bin", "kernel_a.cubin", "/packs/0/kernels/1/path",
       "claimed by /packs/0/kernels/0"},
      {"\"sha256\":\"aaaa", "\"sha256\":\"aaa", "/packs/0/kernels/0/sha256", "63 characters"},
      {"\"sha256\":\"aaaa", "\"sha256\":\"aaaaa", "/packs/0/kernels/0/sha256", "65 characters"},
      {"\"sha256\":\"aaaa", "\"sha256\":\"aaag", "/packs/0/kernels/0/sha256", "is no SHA-256"},
      {"\"sha256\":\"aaaa", "\"sha256\":\"\",\"sha256\":\"", "/packs/0/kernels/0/sha256",
       "(0 char"},
      {"\"sha256\":\"aaaa", "\"sha256\":null,\"x\":\"", "/packs/0/kernels/0/sha256", "found null"},
      {"\"sha256\":", "\"hash\":", "/packs/0/kernels/0/hash", "name, path, sha256"},
      {"\"size\":64656", "\"size\":0", "/packs/0/kernels/0/size", "0 is out of range"},
      {"\"size\":64656", "\"size\":1073741825", "/packs/0/kernels/0/size", "out of range"},
      {"\"size\":64656", "\"size\":-1", "/packs/0/kernels/0/size", "negative"},
      {"\"size\":64656", "\"size\":1e3", "/packs/0/kernels/0/size", "fraction or exponent"},
      {"\"size\":64656", "\"size\":18446744073709551616", "/packs/0/kernels/0/size", "fraction"},
      {"\"size\":64656", "\"size\":\"64656\"", "/packs/0/kernels/0/size", "found a string"},
      {"\"size\":64656,", "", "/packs/0/kernels/0/size", "missing"},
      {"sm_100f", "100f", "/packs/0/kernels/0/arch", "no architecture"},
      {"sm_100f", "sm_100x", "/packs/0/kernels/0/arch", "no architecture"},
      {"\"arch\":\"sm_100f\",", "", "/packs/0/kernels/0/arch", "missing"},
      {"\"dtype_q\":\"e4m3\"", "\"dtype_q\":\"fp8\"", "/packs/0/kernels/0/traits/dtype_q",
       "fp16, bf16, fp32, int8, int32, e4m3, e5m2 or e2m1"},
      {"\"dtype_q\":\"e4m3\"", "\"dtype_q\":\"unknown\"", "/packs/0/kernels/0/traits/dtype_q",
       "allowed are"},
      {"\"dtype_kv\":\"e2m1\",", "", "/packs/0/kernels/0/traits/dtype_kv", "missing"},
      {"\"dtype_kv\":\"e2m1\",", "\"dtype_k\":\"e2m1\",", "/packs/0/kernels/0/traits/dtype_v",
       "missing"},
      {"\"dtype_kv\":\"e2m1\",", "\"dtype_kv\":\"e2m1\",\"dtype_k\":\"e2m1\",",
       "/packs/0/kernels/0/traits/dtype_kv", "not both"},
      {"\"head_dim_qk\":64", "\"head_dim_qk\":0", "/packs/0/kernels/0/traits/head_dim_qk",
       "0 is out of range; allowed are 1 to 8192"},
      {"\"head_dim_qk\":64", "\"head_dim\":64", "/packs/0/kernels/0/traits/head_dim",
       "head_dim_qk"},
      {"\"head_dim_per_cta_v\":256", "\"head_dim_per_cta_v\":300",
       "/packs/0/kernels/1/traits/head_dim_per_cta_v", "does not divide"},
      {"\"kernel_type\":\"context\"", "\"kernel_type\":\"generation\"",
       "/packs/0/kernels/0/traits/kernel_type", "requests only"},
      {"\"kernel_type\":\"context\",", "", "/packs/0/kernels/0/traits/kernel_type", "missing"},
      {"\"threads\":512", "\"threads\":2048", "/packs/0/kernels/0/traits/threads", "1 to 1024"},
      {"\"smem\":64656", "\"smem\":4294967297", "/packs/0/kernels/0/traits/smem", "out of range"},
      {"\"two_cta_mma\":true", "\"two_cta_mma\":1", "/packs/0/kernels/1/traits/two_cta_mma",
       "expected true or false"},
      {"\"two_cta_mma\":true", "\"smem\":1", "/packs/0/kernels/1/traits/smem", "occurs twice"},
      {"\"two_cta_mma\":true", "\"spcompress\":true", "/packs/0/kernels/1/traits/spcompress",
       "knows no such kernels"},
      {"\"traits\":{", "\"traits\":[],\"x\":{", "/packs/0/kernels/0/traits", "found an array"},
      {"\"traits\":{", "\"traits\":{\"a\":{", "/packs/0/kernels/0/traits/a", "unknown key"},
  };
  return kLiars;
}

TEST_CASE("each broken manifest is refused with its place and its reason") {
  for (const Liar& liar : liars()) {
    INFO(liar.from << " -> " << liar.to);
    const Result<Manifest> parsed =
        parse_manifest(replaced(sample_manifest(), liar.from, liar.to), "m.json");
    REQUIRE_FALSE(parsed);
    INFO(parsed.error().message());
    CHECK(parsed.error().code() == StatusCode::kManifestInvalid);
    CHECK(parsed.error().message().starts_with(std::string("m.json: ") + liar.place + ": "));
    CHECK(parsed.error().message().find(liar.phrase) != std::string::npos);
  }
}

TEST_CASE("text that is no JSON is refused with line and column") {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("<html>"), std::string("{} {}"),
        std::string("\0\0\0\0", 4), std::string("{\"schema\": \"\xff\"}"), std::string("nul"),
        sample_manifest() + ",", sample_manifest().substr(0, 700)}) {
    const Result<Manifest> parsed = parse_manifest(text, "m.json");
    REQUIRE_FALSE(parsed);
    INFO(parsed.error().message());
    CHECK(parsed.error().code() == StatusCode::kManifestInvalid);
    CHECK(parsed.error().message().starts_with("m.json: "));
  }
  for (const std::string_view tail :
       {std::string_view("\0", 1), std::string_view("\0garbage {", 10)}) {
    const std::string text = sample_manifest() + std::string(tail);
    const Result<Manifest> ended = parse_manifest(text, "m.json");
    REQUIRE_FALSE(ended);
    CHECK(ended.error().message().find("a NUL, which no JSON text has") != std::string::npos);
  }
  const Result<Manifest> parsed = parse_manifest("{\"schema\"\n  :\n ]", "m.json");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message().find("not a JSON text: parse error at line 3, column 2") !=
        std::string::npos);
}

TEST_CASE("documents of another shape are refused, however deep") {
  for (const std::string& text : {std::string("null"), std::string("17"), std::string("\"x\""),
                                  std::string("[]"), std::string(2000000, '[')}) {
    const Result<Manifest> parsed = parse_manifest(text, "m.json");
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().message().find("m.json: (document): found") == 0);
  }
}

std::string second_kernel_as_first(std::string_view traits_change) {
  std::string text = sample_manifest();
  const std::size_t first = text.find("{\"name\":\"kernel_a\"");
  const std::size_t second = text.find("{\"name\":\"kernel_b\"");
  std::string copy = text.substr(first, second - first);
  if (!traits_change.empty()) copy = replaced(copy, "\"smem\":64656", traits_change);
  return text.insert(second, copy);
}

TEST_CASE("the same sha256 and traits twice is refused, the same sha256 with other traits is not") {
  const Result<Manifest> twice = parse_manifest(second_kernel_as_first(""), "m.json");
  REQUIRE_FALSE(twice);
  CHECK(twice.error().message() ==
        "m.json: /packs/0/kernels/1: the same sha256 and traits as /packs/0/kernels/0");
  CHECK(parse_manifest(second_kernel_as_first("\"smem\":7"), "m.json"));
}

TEST_CASE("one sha256 with two sizes is refused") {
  const std::string text =
      replaced(second_kernel_as_first("\"smem\":7"), "\"size\":64656", "\"size\":9");
  const Result<Manifest> parsed = parse_manifest(text, "m.json");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message().find("/packs/0/kernels/1/size: 64656 bytes, but") !=
        std::string::npos);
}

TEST_CASE("messages show no control characters and stay short") {
  const std::string evil = "\\u001b[31m" + std::string(100000, 'x');
  const Result<Manifest> parsed = parse_manifest(
      replaced(sample_manifest(), "\"dtype_q\":\"e4m3\"", "\"dtype_q\":\"" + evil + "\""),
      "m.json");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message().find('\x1b') == std::string::npos);
  CHECK(parsed.error().message().size() < 500);
}

TEST_CASE("a manifest of a thousand packs is read, one more is refused") {
  const auto packs = [](int count) {
    std::string text = R"({"schema":"cubist.manifest","schema_version":1,"name":"many","packs":[)";
    for (int i = 0; i < count; ++i) {
      text +=
          (i ? "," : "") + std::string(R"({"name":"p)") + std::to_string(i) +
          R"(","family":"cubist_decode","revision":"none","param_layout":"cubist-decode-1","kernels":[]})";
    }
    return text + "]}";
  };
  CHECK(parse_manifest(packs(1024), "m.json"));
  const Result<Manifest> parsed = parse_manifest(packs(1025), "m.json");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message() == "m.json: /packs: 1025 packs; at most 1024 are allowed");
}

TEST_CASE("two packs of one name are refused") {
  std::string text = sample_manifest();
  const std::size_t first = text.find("    {\n      \"name\": \"pack-a\"");
  text.insert(first, R"({"name":"pack-a","family":"cubist_decode","revision":"cubist-decode-1",)"
                     R"("param_layout":"cubist-decode-1","kernels":[]},)");
  const Result<Manifest> parsed = parse_manifest(text, "m.json");
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().message() == "m.json: /packs/1/name: 'pack-a' is the name of /packs/0 too");
}

constexpr const char* kAuxManifest = R"({"schema":"cubist.manifest","schema_version":1,"name":"aux",
"packs":[{"name":"lse","kernels":[
{"name":"lse","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","size":9,"arch":"sm_90a","traits":{"threads":256}}],
"family":"cubist_aux","revision":"none","param_layout":"cubist-lse-1"}]})";

TEST_CASE("a kernel beside attention needs no attention traits, wherever its family stands") {
  const Result<Manifest> parsed = parse_manifest(kAuxManifest, "m.json");
  REQUIRE(parsed);
  CHECK(parsed->packs[0].kernels[0].traits.dtype_q == Dtype::kUnknown);
  CHECK(*parse_manifest(write_manifest(*parsed), "m.json") == *parsed);

  const Result<Manifest> attention = parse_manifest(
      replaced(replaced(kAuxManifest, "cubist_aux", "cubist_decode"), "cubist-lse-1", "none"),
      "m.json");
  REQUIRE_FALSE(attention);
  CHECK(attention.error().message() ==
        "m.json: /packs/0/kernels/0/traits/dtype_q: the key is missing");
  const Result<Manifest> threadless =
      parse_manifest(replaced(kAuxManifest, "\"threads\":256", ""), "m.json");
  REQUIRE_FALSE(threadless);
  CHECK(threadless.error().message() ==
        "m.json: /packs/0/kernels/0/traits/threads: the key is missing");
}

TEST_CASE("a digest that was never filled in is refused in a manifest made by a program") {
  Manifest manifest = *parse_manifest(sample_manifest(), "m.json");
  manifest.packs[0].kernels[1].sha256 = {};
  const Status status = validate_manifest(manifest);
  REQUIRE_FALSE(status);
  CHECK(status.error().message() ==
        "/packs/0/kernels/1/sha256: all zero: the digest was never filled in");
}

TEST_CASE("a loaded manifest knows its folder; a missing file is not found") {
  char folder[] = "/tmp/cubist-manifest-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/m.json";
  REQUIRE(write_file_atomically(path, sample_manifest()));
  const Result<Manifest> loaded = load_manifest(path);
  REQUIRE(loaded);
  CHECK(loaded->folder == std::string(folder) + "/");
  CHECK(load_manifest(path + "x").error().code() == StatusCode::kNotFound);
  CHECK(load_manifest(folder).error().code() == StatusCode::kIo);
  ::remove(path.c_str());
  ::rmdir(folder);
}

}  // namespace
}  // namespace cubist
