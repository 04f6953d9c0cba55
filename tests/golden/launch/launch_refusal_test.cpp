// What keeps a call of the trtllm-gen family from being launched, and that nothing is launched
// then.

#include <algorithm>
#include <filesystem>

#include "launch_rig.h"
#include "recorded_call.h"
#include "runtime/selected.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using Catch::Matchers::Contains;
using test::fake_cuda;
using test::LaunchRig;
using test::RecordedCall;

/// The first recorded call of 0.6.13 with a separate reduction, or without anything behind it.
RecordedCall find_call(bool reduces) {
  for (RecordedCall& call : test::read_recorded_calls("0.6.13")) {
    const bool found = !call.recording["reduction_kernel"].is_null();
    if (found == reduces && call.recording["lse_kernel"].is_null()) return std::move(call);
  }
  FAIL("no such call is recorded");
  return {};
}

std::unique_ptr<runtime::Selected> select(LaunchRig& rig, const RecordedCall& call) {
  auto selected = rig.runtime().select(call.value.problem, call.value.device);
  if (!selected) FAIL(selected.error().message());
  return *std::move(selected);
}

launcher::CallArgs args_of(const RecordedCall& call, const runtime::Selected& selected) {
  launcher::CallArgs args = call.args();
  args.workspace_size = selected.workspace()->size;
  return args;
}

std::size_t cubins_in(const std::string& store) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store)) {
    count += entry.path().extension() == ".cubin" ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a cubin for sm_100 is refused on an sm_90 before it is fetched or loaded") {
  const RecordedCall call = find_call(false);
  LaunchRig rig("0.6.13", {call.kernel()});
  const auto selected = select(rig, call);
  fake_cuda().set_devices({{"Fake H200", 90, 132, 232448}});
  fake_cuda().set_current(fake_cuda().create_context(0));
  fake_cuda().forget_calls();
  const Status status = selected->launch(args_of(call, *selected), nullptr);
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(status.error().message(), Contains("'" + call.kernel() + "' is for sm_100"));
  CHECK_THAT(status.error().message(), Contains("device 0 ('Fake H200') is sm_90"));
  CHECK_THAT(status.error().message(), Contains("select for this device"));
  CHECK(selected->prepare().error().code() == StatusCode::kDeviceMismatch);
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
  CHECK(fake_cuda().launches().empty());
  CHECK(cubins_in(rig.store()) == 0);
}

TEST_CASE("a cubin whose parameter size is not its layout's is refused, naming both") {
  const RecordedCall call = find_call(false);
  LaunchRig rig("0.6.13", {call.kernel()}, 1152);
  const auto selected = select(rig, call);
  const Status status = selected->launch(args_of(call, *selected), rig.stream());
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kManifestInvalid);
  CHECK_THAT(status.error().message(), Contains(call.kernel()) && Contains("1152 bytes") &&
                                           Contains("trtllm-gen-fmha-1280 has 1280"));
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
  CHECK(fake_cuda().launches().empty());
}

TEST_CASE(
    "a capture for which the reduction would have to be loaded is refused before anything is") {
  const RecordedCall call = find_call(true);
  LaunchRig rig("0.6.13", {call.kernel()});
  const auto selected = select(rig, call);
  const launcher::CallArgs args = args_of(call, *selected);
  fake_cuda().begin_capture(rig.stream());
  CHECK(selected->launch(args, rig.stream()).error().code() == StatusCode::kCapture);
  REQUIRE(fake_cuda().end_capture(rig.stream()));
  // The main kernel alone is loaded.
  auto other = select(rig, call);
  const KernelRecord* const main[] = {other->selection().best().record};
  REQUIRE(rig.runtime().prepare(main).has_value());
  fake_cuda().begin_capture(rig.stream());
  const Status status = selected->launch(args, rig.stream());
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kCapture);
  CHECK_THAT(status.error().message(), Contains("cubist_reduce_o_") && Contains("prepare"));
  CHECK(fake_cuda().launches().empty());
  REQUIRE(fake_cuda().end_capture(rig.stream()));

  REQUIRE(selected->prepare().has_value());
  fake_cuda().begin_capture(rig.stream());
  REQUIRE(selected->launch(args, rig.stream()));
  CHECK(fake_cuda().end_capture(rig.stream()));
  REQUIRE(fake_cuda().launches().size() == 2);
  CHECK(fake_cuda().launches()[0].captured);
  CHECK(fake_cuda().launches()[1].captured);
}

TEST_CASE("whatever is wrong with a call, nothing of it is launched") {
  const RecordedCall call = find_call(true);
  LaunchRig rig("0.6.13", {call.kernel()});
  const auto selected = select(rig, call);
  const launcher::CallArgs good = args_of(call, *selected);
  struct Row {
    void (*change)(launcher::CallArgs&);
    const char* words;
  };
  const Row rows[] = {
      {[](launcher::CallArgs& a) { a.q = 0; }, "q is NULL"},
      {[](launcher::CallArgs& a) { a.k += 8; }, "k is 0x200000000008; it must be aligned to 16"},
      {[](launcher::CallArgs& a) { a.v = a.k + 4096; }, "is_mla says that one cache holds both"},
      {[](launcher::CallArgs& a) { a.o = 0; }, "o is NULL"},
      {[](launcher::CallArgs& a) { a.o += 2; }, "o is 0x400000000002"},
      {[](launcher::CallArgs& a) { a.block_table = 0; }, "block_table is NULL"},
      {[](launcher::CallArgs& a) { a.seq_lens_kv = 0; }, "seq_lens_kv is NULL"},
      {[](launcher::CallArgs& a) { a.seq_lens_kv += 2; }, "aligned to 4 bytes"},
      {[](launcher::CallArgs& a) { a.cum_seq_lens_kv = 64; }, "cum_seq_lens_kv is given"},
      {[](launcher::CallArgs& a) { a.k_sf = 64; }, "k_sf is given; it must be given exactly for"},
      {[](launcher::CallArgs& a) { a.o_sf = 64; }, "o_sf is given, but dtype_o is"},
      {[](launcher::CallArgs& a) { a.lse = 64; }, "lse is given"},
      {[](launcher::CallArgs& a) { a.sage_scales[1] = 64; }, "sage_scales of k is given"},
      {[](launcher::CallArgs& a) { a.workspace = 0; }, "workspace is NULL"},
      {[](launcher::CallArgs& a) { a.workspace_size -= 1; }, "this launch needs"},
      {[](launcher::CallArgs& a) { a.o_stride_tokens = 131072; }, "writes dense outputs only"},
      {[](launcher::CallArgs& a) { a.scales.q_scale = 0; }, "q_scale is 0"},
      {[](launcher::CallArgs& a) { a.bmm1_scale_log2 = 2; }, "bmm1_scale_log2 is 0x2"},
  };
  for (const Row& row : rows) {
    INFO(row.words);
    launcher::CallArgs args = good;
    row.change(args);
    const Status status = selected->launch(args, rig.stream());
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(status.error().message(), Contains(row.words));
    CHECK(fake_cuda().launches().empty());
  }
  CHECK(selected->launch(good, rig.stream()));
  CHECK(fake_cuda().launches().size() == 2);
}

TEST_CASE("fetch brings the kernels that follow the main one too") {
  const RecordedCall call = find_call(true);
  LaunchRig rig("0.6.13", {call.kernel()});
  REQUIRE(select(rig, call)->fetch());
  CHECK(cubins_in(rig.store()) == 2);
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
}
