#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "manifest/kernel_index.h"
#include "support/byte_writer.h"
#include "support/large_manifest.h"
#include "support/synthetic_cubin.h"
#include "support/zip_writer.h"

// Writes FOLDER/elf, FOLDER/zip, FOLDER/http and FOLDER/index: small good files of every kind, for
// the fuzzers to start from.

namespace cubist::test {
namespace {

using Kind = SmArch::Kind;
using Files = std::vector<std::pair<std::string, std::vector<std::uint8_t>>>;

Files cubins() {
  SyntheticKernel full;
  full.name = "fmha";
  full.params = {8, 4, 1268};
  full.smem = 0x12345;
  full.cluster = std::array<std::uint32_t, 3>{2, 1, 1};
  full.two_cta_mma = true;
  full.static_smem = 16;
  SyntheticKernel bare;
  bare.name = "bare";
  bare.params = {};
  bare.threads = {0, 0, 0};
  SyntheticKernel large;
  large.name = "large";
  large.params = {17'472};
  large.two_cta_mma = false;
  return {
      {"family", make_cubin({.kernels = {full}}).bytes},
      {"specific", make_cubin({.arch = {100, Kind::kSpecific}, .kernels = {bare}}).bytes},
      {"plain", make_cubin({.arch = {103, Kind::kPortable}, .kernels = {large}}).bytes},
      {"no_note", make_cubin({.tool_note = false, .kernels = {bare}}).bytes},
      {"release_13",
       make_cubin({.arch = {90, Kind::kSpecific}, .release_13 = true, .kernels = {bare}}).bytes},
      {"abi_7",
       make_cubin({.arch = {90, Kind::kSpecific}, .abi_version = 7, .kernels = {bare}}).bytes},
      {"sm_80",
       make_cubin({.arch = {80, Kind::kPortable}, .abi_version = 7, .kernels = {full}}).bytes},
      {"two_kernels", make_cubin({.kernels = {bare, full}}).bytes},
  };
}

Files zips() {
  const std::string text(300, 'x');
  std::vector<std::uint8_t> two_ends = make_zip({{"a", "x"}}, {false, std::string(22, '\0')}).bytes;
  std::copy(two_ends.end() - 44, two_ends.end() - 22, two_ends.end() - 22);
  patch<std::uint16_t>(two_ends, two_ends.size() - 2, 0);
  return {
      {"empty", make_zip({}).bytes},
      {"stored", make_zip({{"a/b.cubin", "text"}, {"c", ""}}).bytes},
      {"deflated", make_zip({{"a/b.cubin", text, true}, {"a/", ""}}).bytes},
      {"descriptor", make_zip({{"a", text, true, true}}).bytes},
      {"zip64",
       make_zip({{"a", text, true, false, true}, {"b", "x", false, true, true}}, {true, "comment"})
           .bytes},
      {"zip64_end", make_zip({{"a", "x"}}, {true, ""}).bytes},
      {"two_ends", two_ends},
      {"utf8", make_zip({{"\xe6\x97\xa5/\xf0\x9f\x98\x80/\xc3\xb6", "x"}}).bytes},
  };
}

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

Files conversations() {
  return {
      {"whole", bytes_of("whole\nHTTP/1.1 200 OK\nContent-Length: 90\nETag: \"a\"\n=90\n.\n")},
      {"resume", bytes_of("whole\nHTTP/2 200\nContent-Length: 90\nETag: \"a\"\n=40\n!\n"
                          "HTTP/2 206\nContent-Range: bytes 40-89/90\nETag: \"a\"\n=50\n.\n")},
      {"range", bytes_of("range\nHTTP/1.1 206 Partial\nContent-Range: bytes 50-149/900\n"
                         "Content-Length: 100\n=100\n.\n")},
      {"last", bytes_of("last\nHTTP/1.1 206 P\ncontent-range: bytes 800-899/900\n=60\n!\n"
                        "HTTP/1.1 206 P\ncontent-range: bytes 860-899/900\n=40\n.\n")},
      {"changed",
       bytes_of("if-range\nHTTP/1.1 200 OK\nContent-Length: 900\nETag: \"v2\"\n=9\n.\n")},
      {"redirects", bytes_of("whole\nHTTP/1.1 302 F\nLocation: //other.example/x\n.\n"
                             "HTTP/1.1 307 F\nLocation: ../y?z\n.\nHTTP/1.1 200 OK\n=5\n.\n")},
      {"busy", bytes_of("whole\nHTTP/1.1 503 Busy\nRetry-After: 7\n.\nHTTP/1.1 429 Slow\n"
                        "Retry-After: Tue, 14 Nov 2023 22:13:30 GMT\n.\nHTTP/1.1 416 R\n.\n")},
      {"refused", bytes_of("range\nHTTP/1.1 200 OK\nContent-Type: text/html\n=80\n.\n")},
  };
}

Files index_pages() {
  return {
      {"json", bytes_of(R"({"files":[{"filename":"pack-1.0-py3-none-any.whl","url":"../f.whl",)"
                        R"("size":9,"hashes":{"sha256":")" +
                        std::string(64, 'a') + R"("}}]})")},
      {"html", bytes_of("<html><a href=\"https://f.example/pack-1.0%2Bcu-py3-none-any.whl?a&amp;b"
                        "#sha256=" +
                        std::string(64, 'a') + "\">x</a><A HREF='y'>y</A></html>")},
  };
}

/// Made by minisign with a key that was thrown away: minisig_fuzz.cpp knows its public half.
Files signatures() {
  const std::string key = "RWQiHRTX8YYDIKv7T7H1s4E+s5DJtso/DIEQgxbueekeAFHieBakGFi7";
  const std::string good =
      "untrusted comment: signature from minisign secret key\n"
      "RUQiHRTX8YYDIGVTaaDoaX9DOyFpd4kMXaaf0uWEgSRIYBpS+NgC3XmuFc47Qd2Gkv++"
      "Inqijp93jxMlqLOW0jPrzPpeqqTNDw0=\n"
      "trusted comment: a fixed comment\n"
      "F6+puumyjMztu1xV8Z/gc/tJ9Ajf3JLQxAybXCqPGm1tpwsZ3F70DNQg0/bNd/at1OErcsO2o4h8JSL3v5iYCA==\n";
  return {{"good", bytes_of(good)},
          {"cut", bytes_of(good.substr(0, good.size() - 30))},
          {"key_line", bytes_of(key)},
          {"key_file", bytes_of("untrusted comment: a key\n" + key + "\n")}};
}

Files trust_documents() {
  const std::string key = "RWQiHRTX8YYDIKv7T7H1s4E+s5DJtso/DIEQgxbueekeAFHieBakGFi7";
  const std::string hash(64, 'a');
  return {
      {"list",
       bytes_of(R"({"schema":"cubist.revocations","schema_version":1,"serial":4,"name":"a",)"
                R"("expires":"2027-01-31","entries":[{"sha256":")" +
                hash + R"(","reason":"wrong","replacement":")" + std::string(64, 'b') + R"("}]})")},
      {"keys", bytes_of(R"({"schema":"cubist.keys","schema_version":1,"serial":2,"add":[")" + key +
                        R"("],"retire":[]})")},
      {"seen", bytes_of(R"({"schema":"cubist.seen","schema_version":1,"serials":{"manifest m":7},)"
                        R"("retired_keys":[")" +
                        key + R"("],"statements":[")" + hash + R"("]})")},
  };
}

Files kernel_indexes() {
  Manifest bare;
  bare.name = "bare";
  KernelIndexHead head;
  head.file = {1, 2, 3, 4};
  return {{"bare", write_kernel_index(bare, head).value()},
          {"two", write_kernel_index(large_manifest(2), head).value()},
          {"some", write_kernel_index(large_manifest(9), head).value()}};
}

std::string blob(const std::string& type, char digit, int size) {
  return R"({"mediaType":"application/vnd.cubist.bundle.)" + type + R"(","digest":"sha256:)" +
         std::string(64, digit) + R"(","size":)" + std::to_string(size) + "}";
}

Files registry_texts() {
  const std::string digest = std::string(64, 'a');
  const auto shard = [](const char* two) {
    std::string text;
    for (int i = 0; i < 32; ++i) text += two;
    return "\"sha256:" + text + "\"";
  };
  return {
      {"image", bytes_of("image\n"
                         R"({"schemaVersion":2,"mediaType":)"
                         R"("application/vnd.oci.image.manifest.v1+json","artifactType":)"
                         R"("application/vnd.cubist.bundle.v1","config":)" +
                         blob("config.v1+json", '1', 100) + ",\"layers\":[" +
                         blob("head.v1", '2', 10) + "," + blob("index.v1+json", '3', 20) + "," +
                         blob("shard.v1", '4', 30) + "," + blob("tail.v1", '5', 10) +
                         R"(],"annotations":{"org.opencontainers.image.title":"n"}})")},
      {"list", bytes_of("image\n"
                        R"({"schemaVersion":2,"manifests":[{}],"mediaType":)"
                        R"("application/vnd.oci.image.index.v1+json"})")},
      {"config", bytes_of("config\n"
                          R"({"schema":"cubist.bundle.config","schema_version":1,)"
                          R"("name":"n","identity":"sha256:)" +
                          digest + R"(","file_bytes":100,"kernels":3,"index":"sha256:)" +
                          [] {
                            std::string text;
                            for (int i = 0; i < 32; ++i) text += "03";
                            return text;
                          }() +
                          "\"}")},
      {"index", bytes_of("index\n"
                         R"({"schema":"cubist.bundle.index","schema_version":1,"shards":[)" +
                         shard("a0") + "," + shard("a1") + "],\"kernels\":[[\"" +
                         std::string(64, '1') + "\",0,0,10,100],[\"" + std::string(64, '2') +
                         "\",0,10,20,9],[\"" + std::string(64, '3') + "\",1,0,50,50]]}")},
      {"reference", bytes_of("reference\noci://[::1]:5000/a/b__c.d-e:v1@sha256:" + digest)},
      {"host", bytes_of("reference\noci://a-b.example:443/k:t")},
      {"challenge", bytes_of("challenge\nBearer realm=\"https://a/t\",service=\"s\\\"\",scope=x\n"
                             "Basic realm=y, Negotiate")},
      {"credentials", bytes_of("credentials\n"
                               R"({"auths":{"h":{"auth":"dTpw"},"h/team":)"
                               R"({"username":"u","password":"p","identitytoken":"i"},)"
                               R"("https://h/v1/":{}},"credHelpers":{"h":"x"},"credsStore":"y"})")},
      {"helper", bytes_of("helper\n"
                          R"({"ServerURL":"h","Username":"<token>","Secret":"s"})")},
      {"token", bytes_of("token\n"
                         R"({"token":"e30.eyJleHAiOjEsIm5iZiI6MX0.c2ln","expires_in":300})")},
  };
}

Files problem_lines() {
  return {
      {"bare",
       bytes_of(R"({"phase":"decode","sm":100,"num_sms":148,"dtype_q":"e4m3","dtype_kv":"e2m1",)"
                R"("dtype_o":"bf16","num_q_heads":64,"num_kv_heads":8,"head_dim_qk":128,)"
                R"("batch":4,"max_q_len":2,"max_kv_len":4096,"bmm1_scale":"ptr",)"
                R"("sage_blocks":[1,4,0,1],"window_left":127,"skip_softmax":0.5})")},
      {"nested",
       bytes_of(R"({"in":{"id":"x\u00e9","num_q_heads":8,"kv_layout":"NHD"},"ok":true})")},
      {"broken", bytes_of(R"({"batch":1e999,"batch":)")},
  };
}

/// Any bytes are a problem for the selector's target: a few patterns to start from.
Files selector_bytes() {
  Files files;
  for (const std::size_t step : {1U, 37U, 91U, 128U, 255U}) {
    std::vector<std::uint8_t> bytes(600);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(i * step + i / 7);
    }
    files.push_back({"step" + std::to_string(step), std::move(bytes)});
  }
  return files;
}

bool write_all(const std::string& folder, const Files& files) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : files) {
    const Status written = write_file_atomically(folder + "/" + name, bytes);
    if (!written) {
      std::fprintf(stderr, "%s\n", written.error().message().c_str());
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  const bool done =
      cubist::test::write_all(folder + "/elf", cubist::test::cubins()) &&
      cubist::test::write_all(folder + "/zip", cubist::test::zips()) &&
      cubist::test::write_all(folder + "/http", cubist::test::conversations()) &&
      cubist::test::write_all(folder + "/index", cubist::test::index_pages()) &&
      cubist::test::write_all(folder + "/kernel_index", cubist::test::kernel_indexes()) &&
      cubist::test::write_all(folder + "/minisig", cubist::test::signatures()) &&
      cubist::test::write_all(folder + "/trust_json", cubist::test::trust_documents()) &&
      cubist::test::write_all(folder + "/oci", cubist::test::registry_texts()) &&
      cubist::test::write_all(folder + "/problem_jsonl", cubist::test::problem_lines()) &&
      cubist::test::write_all(folder + "/selector", cubist::test::selector_bytes());
  return done ? 0 : 1;
}
