#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"

namespace cubist {

/// A problem and the device it is for: what one line of problems, or one set of flags, says.
struct ProblemAndDevice {
  AttentionProblem problem;
  DeviceProfile device;
};

/// One field of a problem under the name it has in JSON and, with dashes, on the command line.
/// dtype_kv stands for dtype_k and dtype_v together; gpcs is a list and has no member.
struct ProblemField {
  struct BothKvTypes {};
  struct Gpcs {};
  using Member = std::variant<
      std::int32_t AttentionProblem::*, std::int64_t AttentionProblem::*, bool AttentionProblem::*,
      float AttentionProblem::*, std::optional<float> AttentionProblem::*,
      ScaleArgument AttentionProblem::*, Dtype AttentionProblem::*, Phase AttentionProblem::*,
      KvLayout AttentionProblem::*, std::array<std::int32_t, 4> AttentionProblem::*,
      std::uint32_t DeviceProfile::*, std::int32_t DeviceProfile::*, BothKvTypes, Gpcs>;

  std::string_view name;
  std::string_view help;
  Member member;
};

/// All fields, sorted by name.
std::span<const ProblemField> problem_fields();
/// Null for an unknown name.
const ProblemField* find_problem_field(std::string_view name);

/// Sets a field from the text of a command-line value: a number, a word, "true" or "false", "ptr"
/// for a scale, "1,4,0,1" for sage_blocks, "18,18,20" for gpcs. errors  kInvalidArgument: names
/// field, text and what is accepted
Status set_field(const ProblemField& field, std::string_view text, ProblemAndDevice& out);

/// SMs of each GPC, as gpcs gives them: at least one GPC, each of 1..kMaxSmsOfGpc SMs (those made
/// so far have up to 20). errors  kInvalidArgument: names the field, the value and the rule
inline constexpr std::int32_t kMaxSmsOfGpc = 256;
inline constexpr std::size_t kMaxGpcs = 256;
Status check_gpcs(std::span<const std::int32_t> gpc_sms);

/// Fills the device's cluster answers from its number of SMs by the model of
/// selector/occupancy.h, unless they are known already.
void complete_device(DeviceProfile& device);

}  // namespace cubist
