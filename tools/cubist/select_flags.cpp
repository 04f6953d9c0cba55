#include "select_flags.h"

#include <algorithm>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "codec/device_presets.h"

namespace cubist::tools {

std::string flag_of(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

namespace {

constexpr const char* kDefaultDevice = "b200";

std::string flag_names(std::string_view field) {
  std::string names = flag_of(field);
  if (field == "max_q_len") names += ",--s-qo";
  if (field == "max_kv_len") names += ",--kv-len";
  if (field == "head_dim_qk") names += ",--head-dim";
  if (field == "is_mla") names += ",--mla";
  return names;
}

bool is_switch(const ProblemField& field) {
  return std::holds_alternative<bool AttentionProblem::*>(field.member);
}

std::string preset_names() {
  std::string names;
  for (const DevicePreset& preset : device_presets()) {
    if (!names.empty()) names += ' ';
    names += preset.name;
  }
  return names;
}

/// dtype_kv first: dtype_k and dtype_v correct it.
int order_of(const ProblemField& field) {
  return std::holds_alternative<ProblemField::BothKvTypes>(field.member) ? 0 : 1;
}

}  // namespace

void ProblemFlags::add_to(CLI::App& command) {
  texts_.resize(problem_fields().size());
  command.add_option("--device", device_name_,
                     "Device preset: " + preset_names() + " (default: " + kDefaultDevice + ")");
  for (std::size_t i = 0; i < problem_fields().size(); ++i) {
    const ProblemField& field = problem_fields()[i];
    const std::string names = flag_names(field.name);
    CLI::Option* option =
        is_switch(field)
            ? command.add_flag(names, texts_[i], std::string(field.help) + " (=false turns it off)")
            : command.add_option(names, texts_[i], std::string(field.help));
    option->group("Problem");
  }
}

std::vector<ProblemFlags::Given> ProblemFlags::given() const {
  std::vector<Given> given;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (!texts_[i].empty()) given.push_back({&problem_fields()[i], texts_[i]});
  }
  std::stable_sort(given.begin(), given.end(), [](const Given& a, const Given& b) {
    return order_of(*a.field) < order_of(*b.field);
  });
  return given;
}

Result<DeviceProfile> ProblemFlags::device() const {
  const std::string name = device_name_.empty() ? kDefaultDevice : device_name_;
  auto device = find_device_preset(name);
  if (!device) {
    return fail(StatusCode::kInvalidArgument,
                "--device '{}' is not known; known: {}. For another one give --sm and --num-sms",
                name, preset_names());
  }
  return *device;
}

std::string_view ProblemFlags::default_device() { return kDefaultDevice; }

bool ProblemFlags::changes_device() const {
  const auto flags = given();
  return std::any_of(flags.begin(), flags.end(), [](const Given& flag) {
    return flag.field->name == "sm" || flag.field->name == "num_sms";
  });
}

Status set_fields(const std::vector<ProblemFlags::Given>& given, ProblemAndDevice& out) {
  const std::int32_t known_sms = out.device.num_sms;
  bool has_gpcs = false;
  for (const ProblemFlags::Given& flag : given) {
    CUBIST_RETURN_IF_ERROR(set_field(*flag.field, flag.text, out));
    has_gpcs = has_gpcs || std::holds_alternative<ProblemField::Gpcs>(flag.field->member);
  }
  if (has_gpcs || out.device.num_sms == known_sms) return {};
  out.device.max_active_clusters = DeviceProfile{}.max_active_clusters;
  complete_device(out.device);
  return {};
}

Result<ProblemAndDevice> ProblemFlags::problem() const {
  ProblemAndDevice out;
  CUBIST_ASSIGN_OR_RETURN(out.device, device());
  CUBIST_RETURN_IF_ERROR(set_fields(given(), out));
  return out;
}

}  // namespace cubist::tools
