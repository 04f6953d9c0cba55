#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "codec/problem_fields.h"
#include "launcher/call_args.h"
#include "support/fake_libcuda.h"
#include "support/fake_tensor_map.h"

namespace cubist::test {

/// One launch that the published runtime made, and the same call in our words.
struct RecordedCall {
  nlohmann::json recording;
  ProblemAndDevice value;

  std::string id() const { return recording["in"]["id"]; }
  std::string kernel() const { return recording["kernel"]; }
  /// The recordings' made-up addresses, given where the problem has them; no workspace size yet.
  launcher::CallArgs args() const;
  /// Eight or four bytes of the recorded parameter block, at a published offset.
  std::uint64_t recorded(std::size_t offset, std::size_t bytes = 8) const;
};

/// Every launch of a release that our selection makes too, on an sm_100.
std::vector<RecordedCall> read_recorded_calls(const std::string& release);

/// The first difference between the stand-in's main launch and the recording; empty: none. A bmm1
/// scale given as a number is held against the float that the call had.
std::string main_difference(const RecordedCall& call, const FakeLaunch& launch);
std::string reduction_difference(const RecordedCall& call, const FakeLaunch& launch);
std::string lse_difference(const RecordedCall& call, const FakeLaunch& launch);

}  // namespace cubist::test
