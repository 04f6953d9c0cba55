#include <string>
#include <string_view>

#include "check.h"
#include "codec/problem_json.h"

// One line of problems: whatever is accepted can be written out and reads back as itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubist;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  DeviceProfile device;
  device.sm = 100;
  device.num_sms = 148;
  ProblemLine first;
  const Status status = read_problem(text, device, first);
  if (!status) {
    FUZZ_CHECK(status.error().code() == StatusCode::kInvalidArgument);
    FUZZ_CHECK(status.error().message().find("offset ") != std::string::npos);
    return 0;
  }
  FUZZ_CHECK(first.in_text.front() == '{' && first.in_text.back() == '}');
  std::string written;
  append_problem_json(first.value.problem, first.value.device, written);
  ProblemLine second;
  FUZZ_CHECK(read_problem(written, device, second).has_value());
  AttentionProblem expected = first.value.problem;
  if (expected.head_dim_vo == -1) expected.head_dim_vo = expected.head_dim_qk;
  // A number that float cannot hold comes back as infinity and is refused by validation, and a
  // scale read on the device has no value: neither needs to survive.
  if (!expected.bmm1_scale.on_device)
    FUZZ_CHECK(second.value.problem.bmm1_scale == expected.bmm1_scale);
  FUZZ_CHECK(second.value.problem.batch == expected.batch);
  FUZZ_CHECK(second.value.problem.head_dim_vo == expected.head_dim_vo);
  FUZZ_CHECK(second.value.problem.dtype_k == expected.dtype_k);
  FUZZ_CHECK(second.value.problem.dtype_v == expected.dtype_v);
  FUZZ_CHECK(second.value.problem.sage_blocks == expected.sage_blocks);
  FUZZ_CHECK(second.value.device.sm == first.value.device.sm);
  return 0;
}
