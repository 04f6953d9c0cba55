#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/problem_fields.h"

namespace CLI {
class App;
}

namespace cubist::tools {

/// The problem's fields as command-line flags: num_q_heads is --num-q-heads, and so on for all
/// fields; --s-qo, --head-dim, --mla and --kv-len are shorter names of max_q_len, head_dim_qk,
/// is_mla and max_kv_len. Values stay text until they are used: a sweep reads them as ranges.
class ProblemFlags {
 public:
  struct Given {
    const ProblemField* field = nullptr;
    std::string text;
  };

  void add_to(CLI::App& command);

  /// In the fields' order; what the user did not give is not in it.
  std::vector<Given> given() const;

  /// Whether the user gave --device.
  bool names_device() const { return !device_name_.empty(); }
  const std::string& device_name() const { return device_name_; }
  /// The device that --device names, else the default one (b200).
  Result<DeviceProfile> device() const;
  static std::string_view default_device();
  /// Whether the user gave --sm or --num-sms, so that no preset's name tells the device.
  bool changes_device() const;

  /// The one problem that the flags describe.
  Result<ProblemAndDevice> problem() const;

 private:
  std::string device_name_;
  std::vector<std::string> texts_;  // by field; empty: not given
};

/// "--num-q-heads" of num_q_heads.
std::string flag_of(std::string_view field);

/// dtype_kv is K's and V's type together; the flags that name one side win over it whatever the
/// order.
Status set_fields(const std::vector<ProblemFlags::Given>& given, ProblemAndDevice& out);

}  // namespace cubist::tools
