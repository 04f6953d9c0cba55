// Calls of the trtllm-gen family through the runtime, with the stand-in for libcuda: what it
// received is what the published runtime launched.

#include <map>

#include "launch_rig.h"
#include "recorded_call.h"
#include "runtime/selected.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using test::fake_cuda;
using test::FakeLaunch;
using test::LaunchRig;
using test::RecordedCall;

/// What a call shows, so that every kind is among those launched.
std::vector<std::string> kinds_of(const RecordedCall& call) {
  const AttentionProblem& p = call.value.problem;
  std::vector<std::string> kinds = {std::string(to_string(p.phase))};
  const auto add = [&](bool is, const char* kind) {
    if (is) kinds.emplace_back(kind);
  };
  add(p.is_mla, "one-copy MLA");
  add(p.dtype_k == Dtype::kE2m1, "FP4 KV");
  add(p.dtype_o == Dtype::kE2m1, "nvfp4 output");
  add(p.varlen_q, "varlen_q");
  add(p.kv_combined, "combined KV");
  add(p.kv_layout == KvLayout::kNhd, "NHD");
  add(!p.uses_shared_paged_kv_idx, "page tables of K and V apart");
  add(p.sparse_dynamic, "dynamic top-k");
  add(p.sinks, "sinks");
  add(p.bmm1_scale.on_device, "device scales");
  add(p.sage_blocks != std::array<std::int32_t, 4>{}, "sage");
  add(!call.recording["reduction_kernel"].is_null(), "reduction");
  add(!call.recording["lse_kernel"].is_null(), "lse");
  add(call.recording["cluster"] != nlohmann::json({1, 1, 1}), "clusters");
  return kinds;
}

/// Every rare kind, and one in so many of the others.
std::vector<RecordedCall> some_of(std::vector<RecordedCall> calls) {
  std::vector<RecordedCall> chosen;
  std::map<std::string, int> seen;
  for (RecordedCall& call : calls) {
    bool wanted = false;
    for (const std::string& kind : kinds_of(call)) wanted = ++seen[kind] % 15 == 1 || wanted;
    wanted = wanted || !call.recording["reduction_kernel"].is_null();
    if (wanted) chosen.push_back(std::move(call));
  }
  return chosen;
}

/// Launches as the recording did; the first difference.
std::string launch_difference(LaunchRig& rig, const RecordedCall& call) {
  auto selected = rig.runtime().select(call.value.problem, call.value.device);
  if (!selected) return selected.error().message();
  const auto need = (*selected)->workspace();
  if (!need) return need.error().message();
  launcher::CallArgs args = call.args();
  args.workspace_size = need->size;
  if (need->size == 0) args.workspace = 0;
  fake_cuda().forget_calls();
  const Status status = (*selected)->launch(args, rig.stream());
  if (!status) return status.error().message();

  const std::vector<FakeLaunch> launches = fake_cuda().launches();
  const bool reduces = !call.recording["reduction_kernel"].is_null();
  const bool lse = !call.recording["lse_kernel"].is_null();
  if (launches.size() != 1U + (reduces ? 1 : 0) + (lse ? 1 : 0)) return "number of launches";
  for (const FakeLaunch& launch : launches) {
    if (launch.stream != rig.stream()) return "stream";
  }
  std::string text = test::main_difference(call, launches[0]);
  if (text.empty() && reduces) text = test::reduction_difference(call, launches[1]);
  if (text.empty() && lse) text = test::lse_difference(call, launches.back());
  return text;
}

void launch_recordings(const std::string& release) {
  const std::vector<RecordedCall> calls = some_of(test::read_recorded_calls(release));
  std::set<std::string> kernels;
  for (const RecordedCall& call : calls) kernels.insert(call.kernel());
  LaunchRig rig(release, kernels);
  std::map<std::string, int> counts;
  int wrong = 0;
  for (const RecordedCall& call : calls) {
    const std::string difference = launch_difference(rig, call);
    if (!difference.empty() && ++wrong <= 10) UNSCOPED_INFO(call.id() << ": " << difference);
    for (const std::string& kind : kinds_of(call)) ++counts[kind];
  }
  CHECK(wrong == 0);
  std::string text;
  for (const auto& [kind, count] : counts) text += fmt::format(", {} {}", count, kind);
  WARN(release << ": " << calls.size() << " calls of " << kernels.size() << " kernels launched"
               << text);
  for (const char* kind : {"decode", "context", "ragged", "one-copy MLA", "FP4 KV", "nvfp4 output",
                           "reduction", "lse", "clusters", "device scales"}) {
    INFO(kind);
    CHECK(counts[kind] > 0);
  }
}

}  // namespace

TEST_CASE("the runtime launches calls of 0.6.13 as they were recorded") {
  launch_recordings("0.6.13");
}

TEST_CASE("the runtime launches calls of 0.6.8 as they were recorded") {
  launch_recordings("0.6.8");
}
