#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.h"
#include "support/tool.h"

namespace cubist {
namespace {

using nlohmann::json;
using test::run_tool;
using test::ToolRun;

const std::string kManifest = CUBIST_SOURCE_DIR "/manifests/flashinfer-0.6.13.json";

/// The heads of GPT-OSS, four new tokens, no sinks, and whatever else the case needs.
ToolRun select_gpt_oss(std::vector<std::string> more) {
  std::vector<std::string> words = {
      "select", "--manifest",     kManifest, "--device",    "b200", "--num-q-heads",
      "64",     "--num-kv-heads", "8",       "--head-dim",  "64",   "--s-qo",
      "4",      "--batch",        "32",      "--page-size", "32"};
  words.insert(words.end(), more.begin(), more.end());
  return run_tool(words);
}

/// Runs `cubist select --jsonl` through a shell, the lines on its standard input.
std::vector<json> answers(const std::string& lines, const std::string& flags, int& exit_code) {
  const test::Scratch scratch;
  const std::string in = scratch / "in";
  const std::string out = scratch / "out";
  std::ofstream(in) << lines;
  const std::string command = std::string(CUBIST_TOOL) + " select --quiet --manifest " + kManifest +
                              " --jsonl " + flags + " < " + in + " > " + out;
  exit_code = WEXITSTATUS(std::system(command.c_str()));
  std::vector<json> documents;
  std::istringstream text(test::file_text(out));
  for (std::string line; std::getline(text, line);) documents.push_back(json::parse(line));
  return documents;
}

}  // namespace

TEST_CASE("select prints kernel, hash and launch plan of a problem in flags") {
  const ToolRun run = select_gpt_oss({"--max-kv-len", "8192"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("H64PagedKvCausalP32VarSeqQ32Kv128PersistentSwapsAbForGen") !=
        std::string::npos);
  CHECK(run.out.find("grid      1 x 8 x 32") != std::string::npos);
}

TEST_CASE("select --json is one document with the recordings' names") {
  const ToolRun run = select_gpt_oss({"--max-kv-len", "8k", "--json", "--explain"});
  REQUIRE(run.exit_code == 0);
  const json document = json::parse(run.out);
  CHECK(document["ok"] == true);
  CHECK(document["in"]["max_kv_len"] == 8192);
  CHECK(document["grid"] == json::array({1, 8, 32}));
  CHECK(document["fallback"].is_null());
  CHECK(document["explain"]["packs"][0]["passes"].size() == 2);
}

TEST_CASE("select --explain of a miss names the nearest kernels and ends with exit code 3") {
  const ToolRun run = select_gpt_oss({"--max-kv-len", "8192", "--dtype-o", "e2m1", "--explain"});
  CHECK(run.exit_code == 3);
  CHECK(run.out.find("nearest kernels") != std::string::npos);
  CHECK(run.out.find("change to: dtype_o") != std::string::npos);
  CHECK(run.err.find("cubist: error: no kernel") != std::string::npos);
}

TEST_CASE("select --explain shows the steps in order, what each tile_q would cost, the runner-up") {
  const ToolRun run = select_gpt_oss({"--max-kv-len", "1024", "--batch", "2", "--explain"});
  CAPTURE(run.out);
  REQUIRE(run.exit_code == 0);
  std::size_t at = 0;
  for (const char* step : {"phase ", "pass 1", "mask ", "tile_q ", "cost_model ", "look_up ",
                           "ctas ", "mode ", "pass 2", "choice ", "runner-up "}) {
    INFO(step);
    const std::size_t found = run.out.find(step, at);
    REQUIRE(found != std::string::npos);
    at = found;
  }
  CHECK(run.out.find("<- chosen") != std::string::npos);
  CHECK(run.out.find("wave(s)") != std::string::npos);
  const json document = json::parse(
      select_gpt_oss({"--max-kv-len", "1k", "--batch", "2", "--explain", "--json"}).out);
  const json& pass = document["explain"]["packs"][0]["passes"][0];
  CHECK(pass["candidates"].size() >= 2);
  for (const char* field : {"tile_q", "num_ctas", "waves", "modelled_time", "chosen", "kernel"}) {
    CHECK(pass["candidates"][0].contains(field));
  }
  CHECK(document["explain"]["runner_up"]["kernel"].is_string());
}

TEST_CASE("an error without --explain has the nearest kernels and their fields before the rest") {
  for (const bool launch : {false, true}) {
    const ToolRun run = launch
                            ? run_tool({"launch", "--dry-run", "--manifest", kManifest, "--device",
                                        "b200", "--num-q-heads", "64", "--num-kv-heads", "8",
                                        "--head-dim", "64", "--page-size", "8"})
                            : select_gpt_oss({"--max-kv-len", "8192", "--page-size", "8"});
    CAPTURE(run.err);
    CHECK(run.exit_code == 3);
    const std::size_t head = run.err.find("cubist: error: no kernel: the rules ask for");
    const std::size_t near = run.err.find("\n  nearest: fmhaSm100fKernel_");
    const std::size_t field = run.err.find("\n    page_size: asked for 8, it has 16\n");
    const std::size_t rest = run.err.find("\n  the rules last asked for: dtype_q bf16");
    CHECK(head == 0);
    REQUIRE(near != std::string::npos);
    REQUIRE(field != std::string::npos);
    REQUIRE(rest != std::string::npos);
    CHECK(near < field);
    CHECK(field < rest);
  }
  const json document =
      json::parse(select_gpt_oss({"--max-kv-len", "8192", "--page-size", "8", "--json"}).out);
  CHECK_THAT(document["error"]["message"].get<std::string>(),
             Catch::Matchers::Contains("page_size: asked for 8, it has 16"));
}

TEST_CASE("a miss shows five kernels with needed, found and what to change") {
  const ToolRun run =
      select_gpt_oss({"--max-kv-len", "8192", "--page-size", "8", "--explain", "--json"});
  CHECK(run.exit_code == 3);
  const json document = json::parse(run.out);
  CHECK(document["ok"] == false);
  const json& nearest = document["explain"]["packs"][0]["nearest"];
  REQUIRE(nearest.size() == 5);
  CHECK(nearest[0]["differences"][0]["field"] == "page_size");
  CHECK(nearest[0]["differences"][0]["needed"] == "8");
  CHECK(nearest[0]["differences"][0]["change"].get<std::string>().find("page_size ") == 0);
}

TEST_CASE("the cost model asked always chooses the same") {
  for (const char* tokens : {"1", "3"}) {
    const std::vector<std::string> flags = {"--max-kv-len", "8192", "--s-qo", tokens, "--json"};
    std::vector<std::string> always = flags;
    always.push_back("--cost-model-always");
    CHECK(select_gpt_oss(flags).out == select_gpt_oss(always).out);
  }
}

TEST_CASE("custom masks and packed QKV are refused by name, a window with chunks by its rule") {
  const auto refusal = [](std::vector<std::string> flags) {
    const ToolRun run = select_gpt_oss(std::move(flags));
    CHECK(run.exit_code != 0);
    return run.err;
  };
  CHECK(refusal({"--custom-mask"}).find("custom_mask is true") != std::string::npos);
  CHECK(refusal({"--packed-qkv"}).find("packed_qkv is true") != std::string::npos);
  CHECK(refusal({"--chunk-size", "1024", "--window-left", "127"}).find("not both") !=
        std::string::npos);
  const ToolRun chunked = select_gpt_oss({"--chunk-size", "1024", "--max-kv-len", "8k", "--json"});
  CHECK(json::parse(chunked.out)["mask_type"] == 2);
}

TEST_CASE("a bad value is a usage error that names field, value and rule") {
  const ToolRun range = select_gpt_oss({"--max-kv-len", "0"});
  CHECK(range.exit_code == 2);
  CHECK(range.err.find("max_kv_len is 0; it must be 1..") != std::string::npos);
  const ToolRun word = select_gpt_oss({"--dtype-q", "fp8"});
  CHECK(word.exit_code == 2);
  CHECK(word.err.find("dtype_q is 'fp8'") != std::string::npos);
  for (const char* gpcs : {"0", "-1", "20,20,99999"}) {
    const ToolRun run = select_gpt_oss({"--gpcs", gpcs});
    CAPTURE(gpcs, run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("gpcs holds ") != std::string::npos);
    CHECK(run.err.find("must be 1..256") != std::string::npos);
  }
  const ToolRun device = run_tool({"select", "--manifest", kManifest, "--device", "b2000"});
  CHECK(device.exit_code == 2);
  CHECK(device.err.find("b200") != std::string::npos);
}

TEST_CASE("a barred kernel is not chosen and shows with its reason") {
  const ToolRun plain = select_gpt_oss({"--max-kv-len", "8192", "--json"});
  const std::string hash = json::parse(plain.out)["sha256"];
  const ToolRun run = select_gpt_oss(
      {"--max-kv-len", "8192", "--bar", hash + "=wrong results", "--json", "--explain"});
  REQUIRE(run.exit_code == 0);
  const json document = json::parse(run.out);
  CHECK(document["sha256"] != hash);
  CHECK(document["fallback"] == "rule_finds_no_kernel");
  CHECK(document["explain"]["barred"][0]["reason"] == "wrong results");
  CHECK(select_gpt_oss({"--bar", "1234"}).exit_code == 2);
  const auto refusal = [](const std::vector<std::string>& bars) {
    const ToolRun refused = select_gpt_oss(bars);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    return refused.err;
  };
  CHECK(refusal({"--bar", std::string(64, 'a')}).find("no kernel of the manifest") !=
        std::string::npos);
  CHECK(refusal({"--bar", hash + "="}).find("reason is empty") != std::string::npos);
  CHECK(refusal({"--bar", hash, "--bar", hash + "=x"}).find("barred twice") != std::string::npos);
}

TEST_CASE("flags that do not go together are a usage error that names them") {
  const auto refusal = [](const std::vector<std::string>& flags) {
    const ToolRun run = select_gpt_oss(flags);
    CAPTURE(flags, run.out, run.err);
    CHECK(run.exit_code == 2);
    const bool json = std::find(flags.begin(), flags.end(), "--json") != flags.end();
    CHECK(run.out.empty() == !json);  // the error itself, as JSON
    return run.err;
  };
  const std::string both = refusal({"--batch", "1..4", "--sweep", "--csv", "--json"});
  CHECK(both.find("--csv and --json") != std::string::npos);
  CHECK(refusal({"--batch", "1..4", "--sweep", "--explain"}).find("--explain does not go") !=
        std::string::npos);
  CHECK(refusal({"--manifest", kManifest}).find("is given twice") != std::string::npos);
  const ToolRun one =
      run_tool({"select", "--compare", kManifest, "--model", "gpt-oss-120b", "--batch", "1..16"});
  CAPTURE(one.err);
  CHECK(one.exit_code == 2);
  CHECK(one.err.find("--compare") != std::string::npos);
  CHECK(one.err.find("needs two") != std::string::npos);
}

TEST_CASE("--jsonl refuses what each line says itself") {
  const std::vector<std::vector<std::string>> cases = {
      {"--batch", "64"}, {"--device", "b300"}, {"--sm", "90"}, {"--num-sms", "78"}, {"--explain"}};
  for (const auto& flags : cases) {
    std::vector<std::string> words = {"select", "--manifest", kManifest, "--jsonl"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ToolRun run = run_tool(words);
    CAPTURE(flags, run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find(flags[0] + " does not go with --jsonl") != std::string::npos);
  }
}

TEST_CASE("--jsonl answers each line in order, bare or inside \"in\", good or bad") {
  int exit_code = 0;
  const auto documents = answers(
      "{\"id\":1,\"num_q_heads\":64,\"head_dim_qk\":64,\"page_size\":32}\n"
      "\n"
      "{\"in\":{\"id\":2,\"num_q_heads\":7},\"ok\":true}\n"
      "{\"id\":3,\"bacth\":1}\n"
      "{\"id\":4,\"num_q_heads\":64,\"head_dim_qk\":64,\"page_size\":32}",
      "", exit_code);
  CHECK(exit_code == 2);  // a line was no problem
  REQUIRE(documents.size() == 4);
  CHECK(documents[0]["in"]["id"] == 1);
  CHECK(documents[0]["ok"] == true);
  CHECK(documents[1]["in"]["id"] == 2);
  CHECK(documents[1]["error"]["code"] == "invalid_argument");
  CHECK(documents[2]["error"]["message"].get<std::string>().find("line 4: bacth") == 0);
  CHECK(documents[3]["in"]["id"] == 4);
  CHECK(documents[3]["kernel"] == documents[0]["kernel"]);
}

TEST_CASE("many lines keep their order over the threads") {
  std::string lines;
  for (int i = 0; i < 5000; ++i) {
    lines += "{\"id\":" + std::to_string(i) +
             ",\"num_q_heads\":64,\"batch\":" + std::to_string(1 + i % 300) +
             ",\"page_size\":32}\n";
  }
  int exit_code = 1;
  const auto documents = answers(lines, "--strict", exit_code);
  CHECK(exit_code == 0);
  REQUIRE(documents.size() == 5000);
  for (int i = 0; i < 5000; ++i) REQUIRE(documents[static_cast<std::size_t>(i)]["in"]["id"] == i);
}

TEST_CASE("--sweep shows where the kernel changes, as text, CSV and JSON") {
  const std::vector<std::string> ranges = {"--sweep", "--max-q-len", "1,4", "--max-kv-len",
                                           "1k..4k"};
  const ToolRun text = select_gpt_oss(ranges);
  CHECK(text.exit_code == 0);  // --s-qo and --max-q-len are one flag: the last one counts
  CHECK(text.out.find("max_q_len 1\n") == 0);

  std::vector<std::string> words = {"select", "--manifest", kManifest, "--num-q-heads",
                                    "64",     "--head-dim", "64",      "--page-size",
                                    "32",     "--batch",    "1..4"};
  words.insert(words.end(), ranges.begin(), ranges.end());
  const ToolRun sweep = run_tool(words);
  CAPTURE(sweep.err);
  REQUIRE(sweep.exit_code == 0);
  CHECK(sweep.out.find("batch 1, max_q_len 1") != std::string::npos);
  CHECK(sweep.out.find("batch 4, max_q_len 4") != std::string::npos);
  words.push_back("--csv");
  const ToolRun csv = run_tool(words);
  CHECK(csv.out.rfind("batch,max_q_len,max_kv_len_from,max_kv_len_to,kernel,", 0) == 0);
  words.back() = "--json";
  const json document = json::parse(run_tool(words).out);
  CHECK(document["problems"] == 3 * 2 * 3073);
  std::int64_t covered = 0;
  for (const json& segment : document["segments"]) {
    covered += std::stoll(segment["to"].get<std::string>()) -
               std::stoll(segment["from"].get<std::string>()) + 1;
  }
  CHECK(covered == 3 * 2 * 3073);
}

TEST_CASE("a sweep over batch, tokens and KV length covers each problem once") {
  const ToolRun run =
      run_tool({"select", "--manifest", kManifest, "--num-q-heads", "64", "--head-dim", "64",
                "--page-size", "32", "--sweep", "--batch", "1..256", "--max-q-len", "1,2,4,8",
                "--max-kv-len", "1k..128k", "--json"});
  REQUIRE(run.exit_code == 0);
  const json document = json::parse(run.out);
  // Batch doubles from 1 to 256; KV lengths are walked one by one.
  CHECK(document["problems"] == 9 * 4 * (131072 - 1024 + 1));
  CHECK(document["refused"] == 0);
  // Neighbours in a stretch's list change kernel: that is what a stretch is.
  const json& segments = document["segments"];
  for (std::size_t i = 1; i < segments.size(); ++i) {
    if (segments[i]["from"] == "1024") continue;
    CHECK(segments[i]["kernel"] != segments[i - 1]["kernel"]);
  }
  CHECK(segments.size() > 36);
}

TEST_CASE("--jsonl --strict refuses where a fallback would serve, and says what was asked for") {
  const std::string line =
      "{\"num_q_heads\":16,\"num_kv_heads\":16,\"page_size\":512,\"max_kv_len\":4096}\n";
  int exit_code = 1;
  const auto strict = answers(line, "--strict", exit_code);
  CHECK(exit_code == 0);
  CHECK(strict.at(0)["ok"] == false);
  CHECK(strict.at(0)["error"]["message"].get<std::string>().find("page_size 512") !=
        std::string::npos);
  const auto loose = answers(line, "", exit_code);
  CHECK(loose.at(0)["ok"] == true);
  CHECK(loose.at(0)["fallback"] == "rule_finds_no_kernel");
  CHECK(loose.at(0)["meta_page_size"] == 128);
}

TEST_CASE("a sweep without a range, with a bad one or with too many problems is refused") {
  const auto sweep = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"select",        "--manifest", kManifest,
                                      "--num-q-heads", "64",         "--sweep"};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool(words);
  };
  CHECK(sweep({"--batch", "4"}).err.find("needs a range") != std::string::npos);
  CHECK(sweep({"--batch", "8..4"}).err.find("FIRST <= LAST") != std::string::npos);
  CHECK(sweep({"--batch", "1.."}).exit_code == 2);
  CHECK(sweep({"--max-kv-len", "1..100000k"}).err.find("more than 10000000") != std::string::npos);
}

TEST_CASE("flags of a model without --compare are refused, and the help says where they go") {
  for (const std::vector<std::string>& flag : std::vector<std::vector<std::string>>{
           {"--model", "deepseek-v3"}, {"--tp", "1"}, {"--presets", "p.json"}}) {
    for (const char* mode : {"--explain", "--sweep", "--jsonl"}) {
      const ToolRun run = select_gpt_oss({flag[0], flag[1], mode});
      CAPTURE(flag[0], mode, run.err);
      CHECK(run.exit_code == 2);
      CHECK(run.err.find(flag[0] + " goes with --compare") != std::string::npos);
      CHECK(run.err.find("cubist working-set") != std::string::npos);
      CHECK(run.out.empty());
    }
  }
  const ToolRun help = run_tool({"select", "--help"});
  CHECK(help.out.find("--model, --tp and --presets go with --compare") != std::string::npos);
}

TEST_CASE("the help tells what fields are without their flags") {
  const ToolRun help = run_tool({"select", "--help"});
  CHECK(help.out.find("decode, types bf16, 8 KV heads, head dimension 128, batch 1, max_q_len 1, "
                      "max_kv_len 1024, page size 64") != std::string::npos);
  const ToolRun fp8 = select_gpt_oss({"--dtype-kv", "fp8"});
  CHECK(fp8.exit_code == 2);
  CHECK(fp8.err.find("(fp8 is e4m3 or e5m2)") != std::string::npos);
}

TEST_CASE("a sweep in which nothing is served ends as one refusal does") {
  const ToolRun unserved =
      select_gpt_oss({"--dtype-o", "e2m1", "--sweep", "--max-kv-len", "1000..1010"});
  CAPTURE(unserved.err);
  CHECK(unserved.exit_code == 3);
  CHECK(unserved.out.find("11 problems: 1 stretches, 0 fallbacks, 11 refused") !=
        std::string::npos);
  CHECK(unserved.err.find("all 11 problems of the sweep are refused, 11 of them so: no kernel") !=
        std::string::npos);
  const ToolRun no_heads =
      run_tool({"select", "--manifest", kManifest, "--sweep", "--batch", "1..4"});
  CHECK(no_heads.exit_code == 2);
  CHECK(no_heads.err.find("num_q_heads") != std::string::npos);
}

TEST_CASE("the plan names its device, and a device without kernels is told what there is") {
  const std::string decode = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";
  CHECK(select_gpt_oss({"--device", "gb300"}).out.find("device    gb300, sm 103, ") == 0);
  const ToolRun by_default = run_tool({"select", "-m", kManifest, "--num-q-heads", "64"});
  CHECK(by_default.out.find("device    b200, sm 100, 148 SMs (the default") == 0);
  for (const std::vector<std::string>& mode :
       std::vector<std::vector<std::string>>{{}, {"--sweep", "--batch", "1..4"}}) {
    std::vector<std::string> words = {"select", "-m", decode, "--num-q-heads", "64"};
    words.insert(words.end(), mode.begin(), mode.end());
    const ToolRun miss = run_tool(words);
    CAPTURE(miss.err);
    CHECK(miss.exit_code == 3);
    CHECK(miss.err.find("(--device defaults to b200)") != std::string::npos);
    CHECK(miss.err.find("kernels are for sm_90a; try --device gh200, h100, h100-pcie, h200") !=
          std::string::npos);
    words.insert(words.end(), {"--device", "b200"});
    const ToolRun named = run_tool(words);
    CHECK(named.exit_code == 3);
    CHECK(named.err.find("defaults to") == std::string::npos);
  }
}

}  // namespace cubist
