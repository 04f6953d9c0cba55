#include "importer/import.h"

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "manifest/parse.h"
#include "manifest/write.h"
#include "memory_tree.h"
#include "metadata_header.h"
#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist {
namespace {

using Row = test::MetadataHeader::Row;

std::string quote(const std::string& text) { return "\"" + text + "\""; }

std::string digest_of(const std::string& text) {
  return sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}).hex();
}

/// A release with a few kernels, consistent until a test breaks it.
struct Release {
  std::map<std::string, std::string> files;  ///< below the prefix
  std::vector<Row> rows;
  std::vector<Row> second_table;
  std::map<std::string, std::string> checksums;  ///< path -> digest
  int generation = 37;
  bool with_checksums = true;
  std::string prefix = "flashinfer_cubin/cubins/" + std::string(40, '7') + "/fmha/trtllm-gen/";

  void add(const std::string& name, const std::string& bytes, Row row = {}) {
    files[name + ".cubin"] = bytes;
    checksums[name + ".cubin"] = digest_of(bytes);
    row.emplace("mFuncName", quote(name));
    row.emplace("sha256", quote(digest_of(bytes)));
    rows.push_back(std::move(row));
  }

  std::map<std::string, std::string> tree() const {
    test::MetadataHeader header(test::generation_columns(generation));
    for (const Row& row : rows) header.add(row);
    std::string text = header.text();
    if (!second_table.empty()) {
      test::MetadataHeader other(test::generation_columns(35), "Vx");
      for (const Row& row : second_table) other.add(row);
      text += other.text();
    }
    std::map<std::string, std::string> all;
    for (const auto& [path, bytes] : files) all[prefix + path] = bytes;
    all[prefix + "include/flashInferMetaInfo.h"] = text;
    if (with_checksums) {
      std::string sums = digest_of(text) + "  include/flashInferMetaInfo.h\n";
      for (const auto& [path, digest] : checksums) sums += digest + "  " + path + "\n";
      all[prefix + "checksums.txt"] = sums;
    }
    all["flashinfer_cubin-9.9.dist-info/METADATA"] =
        "Name: flashinfer-cubin\nVersion: 9.9\nLicense: Apache-2.0\n";
    return all;
  }
};

Release two_kernels() {
  Release release;
  release.add("kernel_a", "bytes of a");
  release.add("kernel_b", "bytes of b", {{"mTileSizeQ", "8"}});
  return release;
}

Result<Import> import(const Release& release, const ImportOptions& options = {}) {
  return import_flashinfer(test::MemoryTree(release.tree()), options);
}

ImportOptions of_version(const std::string& version) {
  ImportOptions options;
  options.version = version;
  return options;
}

ImportOptions rules_0_6_8(ParamLayout layout) {
  ImportOptions options;
  options.revision = HeuristicRevision::kTrtllmGenFmha_0_6_8;
  options.param_layout = layout;
  return options;
}

std::vector<std::string> findings_of(const ImportReport& report) {
  std::vector<std::string> list;
  for (const Finding& finding : report.findings) {
    list.push_back(std::string(to_string(finding.kind)) + " " + finding.subject +
                   (finding.detail.empty() ? "" : ": " + finding.detail));
  }
  return list;
}

TEST_CASE("a consistent release becomes a manifest without a finding") {
  const auto imported = import(two_kernels());
  REQUIRE(imported);
  CHECK(findings_of(imported->report).empty());
  CHECK(imported->report.num_rows() == 2);
  CHECK(imported->report.num_kernels() == 2);
  CHECK(imported->report.num_files == 2);
  CHECK(imported->report.num_checksums == 3);
  CHECK(imported->report.version == "9.9");
  CHECK(imported->report.artifact == std::string(40, '7'));

  const Manifest& manifest = imported->manifest;
  CHECK(manifest.name == "flashinfer-9.9");
  REQUIRE(manifest.packs.size() == 1);
  const Pack& pack = manifest.packs[0];
  CHECK(pack.name == "trtllm-gen-fmha");
  CHECK(pack.license == "Apache-2.0");
  CHECK(pack.revision == HeuristicRevision::kNone);
  CHECK(pack.param_layout == ParamLayout::kNone);  // its files are no cubins
  CHECK(pack.sources ==
        std::vector<Source>{{Source::Kind::kPip, "flashinfer-cubin==9.9", two_kernels().prefix}});
  CHECK(pack.kernels[0].name == "kernel_a");
  CHECK(pack.kernels[0].file() == "kernel_a.cubin");
  CHECK(pack.kernels[0].size_bytes == 10);
  CHECK(pack.kernels[0].sha256.hex() == digest_of("bytes of a"));
  CHECK(*parse_manifest(write_manifest(manifest), "m.json") == manifest);
}

TEST_CASE("a folder that is no wheel is named as its own source") {
  Release release = two_kernels();
  release.prefix = "";
  std::map<std::string, std::string> tree = release.tree();
  tree.erase("flashinfer_cubin-9.9.dist-info/METADATA");
  const auto imported = import_flashinfer(test::MemoryTree(tree));
  REQUIRE(imported);
  CHECK(imported->manifest.name == "flashinfer-unknown");
  CHECK(imported->manifest.packs[0].sources ==
        std::vector<Source>{{Source::Kind::kFolder, "/release", ""}});
  const auto named = import_flashinfer(test::MemoryTree(tree), of_version("1.0"));
  CHECK(named->manifest.name == "flashinfer-1.0");
}

TEST_CASE("the second table becomes a pack of its own that nothing selects from") {
  Release release = two_kernels();
  release.generation = 31;
  release.files["extra.cubin"] = "bytes of extra";
  release.checksums["extra.cubin"] = digest_of("bytes of extra");
  release.second_table = {
      {{"mFuncName", quote("extra")}, {"sha256", quote(digest_of("bytes of extra"))}}};
  const auto imported = import(release, rules_0_6_8(ParamLayout::kTrtllmGenFmha1152));
  REQUIRE(imported);
  CHECK(findings_of(imported->report).empty());
  REQUIRE(imported->manifest.packs.size() == 2);
  CHECK(imported->manifest.packs[0].revision == HeuristicRevision::kTrtllmGenFmha_0_6_8);
  const Pack& second = imported->manifest.packs[1];
  CHECK(second.name == "trtllm-gen-fmha-vx");
  CHECK(second.revision == HeuristicRevision::kNone);
  CHECK(second.param_layout == ParamLayout::kTrtllmGenFmha1152);
  CHECK(second.kernels.size() == 1);
  CHECK(imported->report.tables[1].num_columns == 35);
}

struct Break {
  const char* what;
  void (*apply)(Release&);
  std::vector<std::string> findings;
  std::uint32_t kernels;
};

const std::vector<Break>& breaks() {
  static const std::string a = digest_of("bytes of a");
  static const std::string b = digest_of("bytes of b");
  static const std::string other(64, 'c');
  static const std::vector<Break> kBreaks = {
      {"a row's file is missing",
       [](Release& r) { r.files.erase("kernel_b.cubin"); },
       {"row_without_file kernel_b"},
       1},
      {"a file without a row",
       [](Release& r) { r.rows.pop_back(); },
       {"file_without_row kernel_b.cubin"},
       1},
      {"no checksums",
       [](Release& r) { r.with_checksums = false; },
       {"no_checksums " + two_kernels().prefix + "checksums.txt"},
       2},
      {"a digest that is none",
       [](Release& r) { r.rows[1]["sha256"] = quote("abc"); },
       {"bad_digest kernel_b: 'abc'"},
       1},
      {"an empty digest",
       [](Release& r) { r.rows[1]["sha256"] = quote(""); },
       {"bad_digest kernel_b: ''"},
       1},
      {"a digest of zeros",
       [](Release& r) { r.rows[1]["sha256"] = quote(std::string(64, '0')); },
       {"bad_digest kernel_b: '" + std::string(64, '0') + "'"},
       1},
      {"two digests",
       [](Release& r) { r.checksums["kernel_b.cubin"] = std::string(64, 'c'); },
       {"digest_mismatch kernel_b: the row says " + b + ", checksums.txt " + other},
       1},
      {"a row without a checksum",
       [](Release& r) { r.checksums.erase("kernel_b.cubin"); },
       {"row_without_checksum kernel_b"},
       2},
      {"a checksum without a file",
       [](Release& r) { r.checksums["gone.cubin"] = std::string(64, 'c'); },
       {"checksum_without_file gone.cubin"},
       2},
      {"another size",
       [](Release& r) { r.rows[1]["mCubinSize"] = "11"; },
       {"size_mismatch kernel_b: the row says 11 bytes, the file has 10"},
       2},
      {"a name twice with other bytes",
       [](Release& r) {
         r.rows.push_back(
             {{"mFuncName", quote("kernel_a")}, {"sha256", quote(std::string(64, 'c'))}});
         r.checksums.erase("kernel_a.cubin");
         r.with_checksums = false;
       },
       {"no_checksums " + two_kernels().prefix + "checksums.txt",
        "name_twice kernel_a: " + a + ", then " + other},
       2},
      {"a row twice",
       [](Release& r) { r.rows.push_back(r.rows[0]); },
       {"duplicate_row kernel_a"},
       2},
      {"a file with other traits",
       [](Release& r) {
         r.rows.push_back(r.rows[0]);
         r.rows[2]["mMultiCtasKvMode"] = "2";
       },
       {"shared_file kernel_a"},
       3},
      {"columns that contradict each other",
       [](Release& r) { r.rows[1]["mDataTypeKv"] = "DATA_TYPE_E4M3"; },
       {"column_mismatch kernel_b: mDataTypeKv against mDataTypeK and mDataTypeV"},
       2},
      {"a reserved column",
       [](Release& r) { r.rows[1]["mReserved1"] = "true"; },
       {"reserved_column kernel_b"},
       1},
      {"too much shared memory",
       [](Release& r) { r.rows[1]["mSharedMemBytes"] = "231425"; },
       {"unlaunchable kernel_b: 231425 + 1024 bytes; a device has 232448"},
       2},
      {"stray files",
       [](Release& r) {
         r.files["kernel_a.cubin.lock"] = "";
         r.files["notes"] = "";
       },
       {"stray_file kernel_a.cubin.lock", "stray_file notes"},
       2},
  };
  return kBreaks;
}

TEST_CASE("everything a release says twice is compared") {
  for (const Break& b : breaks()) {
    INFO(b.what);
    Release release = two_kernels();
    b.apply(release);
    const auto imported = import(release);
    REQUIRE(imported);
    CHECK(findings_of(imported->report) == b.findings);
    CHECK(imported->report.num_kernels() == b.kernels);
    CHECK(imported->manifest.packs[0].kernels.size() == b.kernels);
  }
}

TEST_CASE("a name that contradicts its columns is reported") {
  Release release;
  release.add(
      "fmhaSm100fKernel_QkvBfloat16OBfloat16H64PagedKvCausalP32MultiCtasKvVarSeqQ8Kv128StaticSwaps"
      "AbForGen",
      "x");
  const auto imported = import(release);
  REQUIRE(imported);
  REQUIRE(imported->report.findings.size() == 1);
  CHECK(imported->report.findings[0].detail == "tile_q: the name says 8, the row 16");
  CHECK(imported->report.num_disagreements() == 1);
}

TEST_CASE("a changed header is noticed by its own checksum") {
  std::map<std::string, std::string> tree = two_kernels().tree();
  tree[two_kernels().prefix + "include/flashInferMetaInfo.h"] += "// one line more\n";
  const auto imported = import_flashinfer(test::MemoryTree(tree));
  REQUIRE(imported);
  REQUIRE(imported->report.findings.size() == 1);
  CHECK(imported->report.findings[0].kind == FindingKind::kHeaderDigest);
}

TEST_CASE("a broken header or name imports nothing") {
  Release release = two_kernels();
  release.rows[1]["mMaskType"] = "9";
  CHECK(import(release).error().code() == StatusCode::kManifestInvalid);
  Release traversal = two_kernels();
  traversal.rows[1]["mFuncName"] = quote("../../x");
  const auto refused = import(traversal);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kManifestInvalid);
  CHECK(refused.error().message().find("'../../x' holds a '.' or '..' part") != std::string::npos);
  std::map<std::string, std::string> tree = two_kernels().tree();
  tree[two_kernels().prefix + "include/flashInferMetaInfo.h"] =
      "struct A { int x; }; A t[] = {{1}};";
  const auto none = import_flashinfer(test::MemoryTree(tree));
  REQUIRE_FALSE(none);
  CHECK(none.error().message().find("no table of FMHA kernels") != std::string::npos);
}

TEST_CASE("a revision and a layout that do not belong together are refused") {
  const auto imported = import(two_kernels(), rules_0_6_8(ParamLayout::kTrtllmGenFmha1280));
  REQUIRE_FALSE(imported);
  CHECK(imported.error().message().find("/packs/0/param_layout") != std::string::npos);
}

std::string cubin_text(const test::SyntheticKernel& kernel,
                       SmArch arch = {100, SmArch::Kind::kFamily}) {
  const std::vector<std::uint8_t> bytes =
      test::make_cubin({.arch = arch, .kernels = {kernel}}).bytes;
  return {bytes.begin(), bytes.end()};
}

test::SyntheticKernel good_kernel(const std::string& name) {
  test::SyntheticKernel kernel;
  kernel.name = name;
  kernel.smem = 40000;
  kernel.params = {1152};
  return kernel;
}

TEST_CASE("the layout of an unknown release is what its cubins declare") {
  Release release;
  release.add("kernel_a", cubin_text(good_kernel("kernel_a")));
  CHECK(import(release)->manifest.packs[0].param_layout == ParamLayout::kTrtllmGenFmha1152);
  test::SyntheticKernel odd = good_kernel("kernel_a");
  odd.params = {1400};
  Release newer;
  newer.add("kernel_a", cubin_text(odd));
  CHECK(import(newer)->manifest.packs[0].param_layout == ParamLayout::kNone);
}

TEST_CASE("deep compares every cubin with its row") {
  Release release;
  release.add("good", cubin_text(good_kernel("good")));
  test::SyntheticKernel threads = good_kernel("threads");
  threads.threads = {384, 1, 1};
  release.add("threads", cubin_text(threads));
  test::SyntheticKernel smem = good_kernel("smem");
  smem.smem = 40001;
  release.add("smem", cubin_text(smem));
  test::SyntheticKernel params = good_kernel("params");
  params.params = {1280};
  release.add("params", cubin_text(params));
  release.add("arch", cubin_text(good_kernel("arch"), {103, SmArch::Kind::kSpecific}));
  release.add("entry", cubin_text(good_kernel("other")));
  release.add("text", "<html>");
  release.add("rotten", cubin_text(good_kernel("rotten")));
  release.files["rotten.cubin"][40] ^= 1;  // the section table's offset
  release.files["rotten.cubin"].pop_back();

  for (const unsigned threads_used : {1U, 4U}) {
    ImportOptions options;
    options.deep = true;
    options.threads = threads_used;
    std::atomic<std::uint64_t> last = 0;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      CHECK(total == 8);
      last = done;
    };
    const auto imported = import(release, options);
    REQUIRE(imported);
    CHECK(last == 8);
    CHECK(imported->report.num_deep == 8);
    std::vector<std::string> found;
    for (const Finding& finding : imported->report.findings) {
      found.push_back(std::string(to_string(finding.kind)) + " " + finding.subject);
    }
    CHECK(found == std::vector<std::string>{"cubin_digest rotten", "cubin_mismatch threads",
                                            "cubin_mismatch smem", "cubin_mismatch params",
                                            "cubin_mismatch arch", "cubin_mismatch entry",
                                            "cubin_unreadable text", "cubin_unreadable rotten"});
    CHECK(imported->report.findings[1].detail == "threads: the manifest says 512, the cubin 384");
  }
}

TEST_CASE(
    "a pack's least driver is that of its cubins' tools, and deep finds one that needs more") {
  Release release;
  release.add("a", cubin_text(good_kernel("a")));
  release.add("b", cubin_text(good_kernel("b")));
  ImportOptions options;
  options.deep = true;
  CHECK(import(release, options)->manifest.packs[0].min_driver == 12000);
  CHECK(import(release, options)->report.num_disagreements() == 0);

  test::SyntheticCubin newer;
  newer.release_13 = true;
  newer.kernels = {good_kernel("c")};
  const std::vector<std::uint8_t> bytes = test::make_cubin(newer).bytes;
  release.add("c", std::string(bytes.begin(), bytes.end()));
  const auto imported = import(release, options);
  CHECK(imported->manifest.packs[0].min_driver == 12000);
  REQUIRE(imported->report.findings.size() == 1);
  CHECK(imported->report.findings[0].subject == "c");
  CHECK(imported->report.findings[0].detail ==
        "min_driver: the manifest says 12.0, the cubin 13.0");
}

TEST_CASE("where the first cubin cannot be read nothing is said of drivers") {
  Release release;
  release.add("text", "<html>");
  release.add("good", cubin_text(good_kernel("good")));
  CHECK(import(release)->manifest.packs[0].min_driver == 0);
}

TEST_CASE("deep stops when it is cancelled") {
  const std::atomic<bool> cancel = true;
  ImportOptions options;
  options.deep = true;
  options.cancel = &cancel;
  const auto imported = import(two_kernels(), options);
  REQUIRE_FALSE(imported);
  CHECK(imported.error().code() == StatusCode::kInterrupted);
}

}  // namespace
}  // namespace cubist
