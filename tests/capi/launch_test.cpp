// Selecting many at once, selecting and launching in one call, bounds of workspaces, and a look
// behind the addresses of a call.

#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rig.h"

namespace {

using Catch::Matchers::Contains;
using cubist::test::CRig;
using cubist::test::fake_cuda;

/// Memory of the stand-in's, which knows how long it is and on which device; for an array of T.
template <class T>
T* device_copy(const std::vector<T>& host) {
  return static_cast<T*>(fake_cuda().allocate(host.data(), host.size() * sizeof(T)));
}

/// A rig whose tensors are the stand-in's memory.
struct DeviceRig : CRig {
  DeviceRig() {
    constexpr std::size_t kPage = 2 * 32 * 64;
    lengths = {40, 3};
    table.assign(2 * 64, 1);
    args.q = device_copy(std::vector<uint16_t>(4 * 8 * 64, 0x3f80));
    args.k = device_copy(std::vector<uint16_t>(2 * kPage, 0x3f80));
    args.v = device_copy(std::vector<uint16_t>(2 * kPage, 0x3f80));
    args.o = device_copy(std::vector<uint16_t>(4 * 8 * 64, 0));
    args.workspace = device_copy(std::vector<uint8_t>(args.workspace_size, 0));
    upload();
  }
  void upload() {
    args.block_table = device_copy(table);
    args.seq_lens_kv = device_copy(lengths);
  }
  cubist_status check() { return cubist_selection_check(selection, &args, nullptr); }

  std::vector<int32_t> lengths;
  std::vector<int32_t> table;
};

}  // namespace

TEST_CASE("many problems are selected at once, all or none") {
  CRig rig;
  std::vector<cubist_attention_problem> problems(3, rig.problem);
  problems[1].batch = 7;
  problems[2].max_kv_len = 100;
  std::vector<cubist_selection*> made(3, nullptr);
  REQUIRE(cubist_runtime_select_many(rig.runtime, problems.data(), 3, &rig.device, made.data(),
                                     nullptr) == CUBIST_STATUS_OK);
  for (cubist_selection* selection : made) {
    CHECK(cubist_selection_destroy(selection) == CUBIST_STATUS_OK);
  }
  problems[2].num_q_heads = 5;
  CHECK(cubist_runtime_select_many(rig.runtime, problems.data(), 3, &rig.device, made.data(),
                                   nullptr) == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK_THAT(std::string(cubist_last_error_message()),
             Contains("problems[2]") && Contains("num_q_heads"));
  CHECK(made == std::vector<cubist_selection*>(3, nullptr));
}

TEST_CASE("many problems are selected, each with a status of its own where that is asked for") {
  CRig rig;
  std::vector<cubist_attention_problem> problems(3, rig.problem);
  problems[1].head_dim_qk = 96;
  std::vector<cubist_selection*> made(3, nullptr);
  std::vector<cubist_status> statuses(3, -1);
  REQUIRE(cubist_runtime_select_many(rig.runtime, problems.data(), 3, &rig.device, made.data(),
                                     statuses.data()) == CUBIST_STATUS_OK);
  CHECK(statuses ==
        std::vector<cubist_status>{CUBIST_STATUS_OK, CUBIST_STATUS_UNSUPPORTED, CUBIST_STATUS_OK});
  CHECK(made[1] == nullptr);
  CHECK(cubist_selection_destroy(made[0]) == CUBIST_STATUS_OK);
  CHECK(cubist_selection_destroy(made[2]) == CUBIST_STATUS_OK);
}

TEST_CASE("select and launch in one call selects once for each problem and context") {
  CRig rig;
  const auto launch = [&](const cubist_device* device) {
    return cubist_runtime_launch(rig.runtime, &rig.problem, device, &rig.args, nullptr);
  };
  const auto selections = [&] {
    cubist_runtime_info info = CUBIST_RUNTIME_INFO_INIT;
    REQUIRE(cubist_runtime_get_info(rig.runtime, &info) == CUBIST_STATUS_OK);
    return info.selections;
  };
  const uint64_t before = selections();
  for (int i = 0; i < 5; ++i) REQUIRE(launch(nullptr) == CUBIST_STATUS_OK);
  CHECK(selections() == before + 1);
  for (int i = 0; i < 5; ++i) REQUIRE(launch(&rig.device) == CUBIST_STATUS_OK);
  CHECK(selections() == before + 2);
  rig.problem.batch = 1;
  REQUIRE(launch(nullptr) == CUBIST_STATUS_OK);
  CHECK(selections() == before + 3);
  fake_cuda().set_current(fake_cuda().create_context(0));
  REQUIRE(launch(nullptr) == CUBIST_STATUS_OK);
  CHECK(selections() == before + 4);
  CHECK(fake_cuda().launches().size() == 12);
}

TEST_CASE("a rule file of the options decides what is selected and launched, and explain says so") {
  CRig rig;
  const cubist::test::Scratch folder;
  const std::string rules = folder / "rules.json";
  std::ofstream(rules) << R"({"schema": "cubist.overrides", "schema_version": 1, "rules": [
    {"name": "wide", "reason": "a test", "force": {"tile_q": 64, "scheduler": "static"}}]})";
  const char* manifests[] = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"};
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  options.manifests = manifests;
  options.num_manifests = 1;
  options.overrides = rules.c_str();
  const std::string store = folder / "store";
  options.store_dir = store.c_str();
  cubist_runtime* runtime = nullptr;
  REQUIRE(cubist_runtime_open(&options, &runtime) == CUBIST_STATUS_OK);
  cubist_selection* selection = nullptr;
  REQUIRE(cubist_runtime_select(runtime, &rig.problem, &rig.device, &selection) ==
          CUBIST_STATUS_OK);
  cubist_plan_info plan = CUBIST_PLAN_INFO_INIT;
  REQUIRE(cubist_selection_get_plan(selection, 0, &plan) == CUBIST_STATUS_OK);
  CHECK_THAT(std::string(plan.kernel), Contains("h64_q64_sm90a"));
  const char* text = nullptr;
  REQUIRE(cubist_selection_explain(selection, &text) == CUBIST_STATUS_OK);
  CHECK_THAT(std::string(text), Contains("rule 'wide' forces"));
  cubist_workspace_info bound = CUBIST_WORKSPACE_INFO_INIT;
  CHECK(cubist_runtime_get_workspace_bound(runtime, &rig.problem, &rig.device, &bound) ==
        CUBIST_STATUS_OK);
  cubist_workspace_info need = CUBIST_WORKSPACE_INFO_INIT;
  REQUIRE(cubist_selection_get_workspace(selection, &need) == CUBIST_STATUS_OK);
  CHECK(need.size_bytes <= bound.size_bytes);
  rig.args.workspace_size = bound.size_bytes;
  std::vector<uint8_t> workspace(bound.size_bytes + 256, 0);
  rig.args.workspace = reinterpret_cast<void*>(
      (reinterpret_cast<std::uintptr_t>(workspace.data()) + 255) / 256 * 256);
  CHECK(cubist_selection_launch(selection, &rig.args, nullptr) == CUBIST_STATUS_OK);
  REQUIRE(fake_cuda().launches().size() == 1);
  CHECK_THAT(fake_cuda().launches()[0].function, Contains("h64_q64_sm90a"));
  CHECK(cubist_selection_destroy(selection) == CUBIST_STATUS_OK);
  CHECK(cubist_runtime_destroy(runtime) == CUBIST_STATUS_OK);
}

TEST_CASE("many threads launch through one runtime, selection and memo") {
  CRig rig;
  constexpr int kThreads = 8;
  constexpr int kLaunches = 50;
  const cubist::cuda::CUcontext context = fake_cuda().create_context(0);
  std::vector<int> failures(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      fake_cuda().set_current(context);
      cubist_attention_problem problem = rig.problem;
      problem.num_pages = 128 + t % 3;  // three questions among the threads
      for (int i = 0; i < kLaunches; ++i) {
        const cubist_status status =
            i % 2 == 0 ? cubist_selection_launch(rig.selection, &rig.args, nullptr)
                       : cubist_runtime_launch(rig.runtime, &problem, nullptr, &rig.args, nullptr);
        failures[static_cast<std::size_t>(t)] += status == CUBIST_STATUS_OK ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == std::vector<int>(kThreads, 0));
  CHECK(fake_cuda().launches().size() == kThreads * kLaunches);
  CHECK(fake_cuda().count("cuModuleLoadData") == 1);
}

TEST_CASE("no problem of a range needs more workspace than its bound says") {
  CRig rig;
  std::mt19937 random(3);
  const auto upto = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  std::size_t split = 0;
  for (int range = 0; range < 40; ++range) {
    cubist_attention_problem largest = CUBIST_ATTENTION_PROBLEM_INIT;
    largest.num_kv_heads = upto(8);
    largest.num_q_heads = largest.num_kv_heads * upto(16);
    largest.head_dim_qk = range % 2 == 0 ? 64 : 128;
    largest.batch = upto(range < 20 ? 300 : 8);
    largest.max_q_len = upto(16);
    largest.max_kv_len = upto(100000);
    largest.page_size = 1 << upto(6);
    cubist_workspace_info bound = CUBIST_WORKSPACE_INFO_INIT;
    REQUIRE(cubist_runtime_get_workspace_bound(rig.runtime, &largest, &rig.device, &bound) ==
            CUBIST_STATUS_OK);
    for (int i = 0; i < 50; ++i) {
      cubist_attention_problem problem = largest;
      problem.batch = upto(largest.batch);
      problem.max_q_len = upto(largest.max_q_len);
      problem.max_kv_len = upto(largest.max_kv_len);
      cubist_selection* selection = nullptr;
      REQUIRE(cubist_runtime_select(rig.runtime, &problem, &rig.device, &selection) ==
              CUBIST_STATUS_OK);
      cubist_workspace_info need = CUBIST_WORKSPACE_INFO_INIT;
      REQUIRE(cubist_selection_get_workspace(selection, &need) == CUBIST_STATUS_OK);
      CHECK(need.size_bytes <= bound.size_bytes);
      CHECK(need.zero_bytes <= bound.zero_bytes);
      split += need.size_bytes > 0 ? 1 : 0;
      cubist_selection_destroy(selection);
    }
  }
  CHECK(split > 100);
}

TEST_CASE("a range whose largest problem no kernel serves has no bound") {
  CRig rig;
  cubist_workspace_info bound = CUBIST_WORKSPACE_INFO_INIT;
  rig.problem.head_dim_qk = 96;
  CHECK(cubist_runtime_get_workspace_bound(rig.runtime, &rig.problem, &rig.device, &bound) ==
        CUBIST_STATUS_UNSUPPORTED);
  rig.problem.phase = CUBIST_PHASE_CONTEXT;
  CHECK(cubist_runtime_get_workspace_bound(rig.runtime, &rig.problem, &rig.device, &bound) ==
        CUBIST_STATUS_UNSUPPORTED);
  CHECK(bound.size_bytes == 0);
}

TEST_CASE("a call in which everything is right passes a look behind its addresses") {
  DeviceRig rig;
  INFO(cubist_last_error_message());
  CHECK(rig.check() == CUBIST_STATUS_OK);
  CHECK(fake_cuda().launches().empty());
}

TEST_CASE("lengths, pages and memory that the device's own data gives away are refused") {
  const auto refused = [](auto change, const std::string& phrase) {
    DeviceRig rig;
    change(rig);
    INFO(phrase);
    CHECK(rig.check() == CUBIST_STATUS_INVALID_ARGUMENT);
    CHECK_THAT(std::string(cubist_last_error_message()), Contains(phrase));
    CHECK(fake_cuda().launches().empty());
  };
  refused(
      [](DeviceRig& rig) {
        rig.lengths[1] = 2049;
        rig.upload();
      },
      "seq_lens_kv[1] is 2049; it must be 0..max_kv_len, which is 2048");
  refused(
      [](DeviceRig& rig) {
        rig.lengths[0] = -1;
        rig.upload();
      },
      "seq_lens_kv[0] is -1");
  refused(
      [](DeviceRig& rig) {
        rig.table[1] = -1;
        rig.upload();
      },
      "block_table[0][1] is -1");
  refused(
      [](DeviceRig& rig) {
        rig.table[64] = 2;
        rig.upload();
      },
      "k up to page 2 of the block_table");
  refused([](DeviceRig& rig) { rig.args.q = device_copy(std::vector<uint16_t>(2047, 0)); },
          "q is 0x");
  refused([](DeviceRig& rig) { rig.args.o = device_copy(std::vector<uint16_t>(100, 0)); },
          "o is 0x");
  static uint16_t of_the_host[4096];
  refused(
      [](DeviceRig& rig) {
        rig.args.q =
            reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(of_the_host) + 15) / 16 * 16);
      },
      "no memory that the CUDA driver knows");
}

TEST_CASE("tensors of another device are refused by name and number") {
  DeviceRig rig;
  fake_cuda().set_devices({{}, {}});
  fake_cuda().set_current(fake_cuda().create_context(1));
  const int32_t* elsewhere = device_copy(rig.lengths);
  fake_cuda().set_current(fake_cuda().create_context(0));
  rig.args.seq_lens_kv = elsewhere;
  CHECK(rig.check() == CUBIST_STATUS_INVALID_ARGUMENT);
  CHECK_THAT(std::string(cubist_last_error_message()),
             Contains("seq_lens_kv") && Contains("memory of device 1"));
}

TEST_CASE("a captured stream is not waited for") {
  DeviceRig rig;
  const cubist::cuda::CUstream stream = fake_cuda().create_stream();
  fake_cuda().begin_capture(stream);
  CHECK(cubist_selection_check(rig.selection, &rig.args, stream) == CUBIST_STATUS_CAPTURE);
  CHECK(fake_cuda().end_capture(stream));
}
