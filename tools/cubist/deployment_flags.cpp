#include "deployment_flags.h"

#include <algorithm>
#include <array>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "codec/problem_fields.h"
#include "document/json_text.h"
#include "select_flags.h"

namespace cubist::tools {
namespace {

// Fields that take several values, or ranges of them.
constexpr std::array<std::string_view, 3> kRanges = {"batch", "max_q_len", "max_kv_len"};
constexpr std::array<std::string_view, 5> kLists = {"phase", "dtype_q", "dtype_kv", "dtype_o",
                                                    "page_size"};
// What a model's preset says already.
constexpr std::array<std::string_view, 8> kShape = {"num_q_heads", "num_kv_heads",   "head_dim_qk",
                                                    "head_dim_vo", "window_left",    "sinks",
                                                    "is_mla",      "sparse_mla_topk"};
// Fields of one launch, and those that follow from the range.
constexpr std::array<std::string_view, 8> kLeftOut = {
    "sum_seq_q", "sum_seq_kv", "max_pages_per_seq", "num_pages",
    "gpcs",      "dtype_k",    "dtype_v",           "max_active_clusters"};

constexpr std::string_view kDefaultMaxQLen = "1";

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string all_names_of(std::string_view field) {
  std::string names = flag_of(field);
  if (field == "max_q_len") names += ",--s-qo";
  if (field == "max_kv_len") names += ",--kv-len";
  if (field == "head_dim_qk") names += ",--head-dim";
  if (field == "is_mla") names += ",--mla";
  return names;
}

std::string help_of(const ProblemField& field) {
  std::string help(field.help);
  if (holds(kRanges, field.name)) help += "; ranges: 8, 1..256, ..32k, 1,2,4 (k = 1,024)";
  if (holds(kLists, field.name)) help += "; a list with commas";
  return help;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> items;
  for (;;) {
    const std::size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

/// The values of a list, each read as the field's own.
template <class T>
Status read_list(std::string_view field, const std::string& text, T AttentionProblem::*member,
                 std::vector<T>& out) {
  if (text.empty()) return {};
  out.clear();
  for (const std::string& item : split(text)) {
    ProblemAndDevice value;
    CUBIST_RETURN_IF_ERROR(set_field(*find_problem_field(field), item, value));
    out.push_back(value.problem.*member);
  }
  return {};
}

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command
      .add_option("--model", models,
                  "Preset ('cubist presets'), or a Hugging Face config.json or its folder; may be "
                  "repeated")
      ->allow_extra_args(false);
  command.add_option("--presets", preset_files, "A preset file of your own (may be repeated)")
      ->allow_extra_args(false);
  command.add_option("--tp", tp, "Tensor parallel sizes that divide the model's heads, a list");
}

DeploymentFlags DeploymentFlags::from(ModelFlags model, std::string device, bool strict,
                                      std::map<std::string, std::string, std::less<>> texts) {
  DeploymentFlags flags;
  flags.model_ = std::move(model);
  flags.device_ = std::move(device);
  flags.strict_ = strict;
  flags.texts_ = std::move(texts);
  return flags;
}

void DeploymentFlags::add_to(CLI::App& command) {
  model_.add_to(command);
  command.add_option("--device", device_, "Device preset");
  command.add_flag("--strict", strict_, "Only what the packs' own rules choose, no fallback");
  for (const ProblemField& field : problem_fields()) {
    if (holds(kLeftOut, field.name)) continue;
    std::string& target = texts_[std::string(field.name)];
    CLI::Option* option =
        std::holds_alternative<bool AttentionProblem::*>(field.member)
            ? command.add_flag(all_names_of(field.name), target, help_of(field))
            : command.add_option(all_names_of(field.name), target, help_of(field));
    option->group("Problems");
  }
}

bool DeploymentFlags::has(std::string_view field) const { return !text(field).empty(); }

std::string DeploymentFlags::text(std::string_view field) const {
  const auto at = texts_.find(field);
  return at == texts_.end() ? std::string() : at->second;
}

std::string DeploymentFlags::assumed() const {
  const workingset::ClassOptions defaults;
  std::string text;
  const auto add = [&](std::string_view field, const auto& value) {
    if (has(field)) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", flag_of(field), value);
  };
  add("phase", to_string(defaults.phases.front()));
  add("dtype_q", to_string(defaults.dtype_q.front()));
  add("page_size", defaults.page_size.front());
  add("max_q_len", kDefaultMaxQLen);
  return text;
}

Result<presets::Library> DeploymentFlags::presets() const {
  return presets::Library::load(presets::default_preset_folder(), model_.preset_files);
}

Result<DeviceProfile> DeploymentFlags::device(const std::string& name) const {
  ProblemAndDevice value;
  if (!name.empty()) {
    CUBIST_ASSIGN_OR_RETURN(const presets::Library library, presets());
    CUBIST_ASSIGN_OR_RETURN(const presets::DevicePreset preset, library.find_device(name));
    value.device = preset.profile;
  }
  for (const std::string_view field : {"sm", "num_sms"}) {
    if (!has(field)) continue;
    CUBIST_RETURN_IF_ERROR(set_field(*find_problem_field(field), text(field), value));
  }
  if (value.device.sm == 0 || value.device.num_sms == 0) {
    return fail(StatusCode::kInvalidArgument,
                "no device: give --device ('cubist presets' lists them), or --sm and --num-sms");
  }
  return value.device;
}

Status DeploymentFlags::read_lists(workingset::ClassOptions& options) const {
  using P = AttentionProblem;
  CUBIST_RETURN_IF_ERROR(read_list("phase", text("phase"), &P::phase, options.phases));
  CUBIST_RETURN_IF_ERROR(read_list("dtype_q", text("dtype_q"), &P::dtype_q, options.dtype_q));
  CUBIST_RETURN_IF_ERROR(read_list("dtype_kv", text("dtype_kv"), &P::dtype_k, options.dtype_kv));
  CUBIST_RETURN_IF_ERROR(read_list("dtype_o", text("dtype_o"), &P::dtype_o, options.dtype_o));
  CUBIST_RETURN_IF_ERROR(
      read_list("page_size", text("page_size"), &P::page_size, options.page_size));
  CUBIST_ASSIGN_OR_RETURN(const auto sizes, workingset::parse_ranges("--tp", model_.tp));
  options.tensor_parallel.clear();
  for (const workingset::Range& range : sizes) {
    if (range.last > 1024) {
      return fail(StatusCode::kInvalidArgument, "--tp {}: at most 1024 devices", range.last);
    }
    for (std::int32_t tp = range.first; tp <= range.last; ++tp) {
      options.tensor_parallel.push_back(tp);
    }
  }
  return {};
}

Status DeploymentFlags::read_rest(AttentionProblem& problem) const {
  ProblemAndDevice value;
  value.problem = problem;
  for (const auto& [field, given] : texts_) {
    if (given.empty() || holds(kRanges, field) || holds(kLists, field) || field == "sm" ||
        field == "num_sms") {
      continue;
    }
    CUBIST_RETURN_IF_ERROR(set_field(*find_problem_field(field), given, value));
  }
  problem = value.problem;
  return {};
}

Status DeploymentFlags::read_ranges(std::int32_t longest, workingset::Query& query) const {
  if (!has("batch")) {
    return fail(StatusCode::kInvalidArgument,
                "--batch is missing: which batch sizes can there be? For example --batch 1..256");
  }
  CUBIST_ASSIGN_OR_RETURN(query.batch, workingset::parse_ranges("--batch", text("batch")));
  const std::string q_len = has("max_q_len") ? text("max_q_len") : std::string(kDefaultMaxQLen);
  CUBIST_ASSIGN_OR_RETURN(query.max_q_len, workingset::parse_ranges("--max-q-len", q_len));
  if (has("max_kv_len")) {
    CUBIST_ASSIGN_OR_RETURN(query.max_kv_len,
                            workingset::parse_ranges("--max-kv-len", text("max_kv_len")));
  } else if (longest > 0) {
    query.max_kv_len = {{1, longest}};
  } else {
    return fail(StatusCode::kInvalidArgument,
                "--max-kv-len is missing, and no preset says how long contexts can be; for example "
                "--max-kv-len ..131072");
  }
  return {};
}

Status DeploymentFlags::check_shape_flags() const {
  if (model_.models.empty()) {
    if (has("num_q_heads")) return {};
    return fail(StatusCode::kInvalidArgument,
                "no model: give --model ('cubist presets' lists them), or a shape: --num-q-heads, "
                "--num-kv-heads, --head-dim");
  }
  for (const std::string_view field : kShape) {
    if (!has(field)) continue;
    return fail(StatusCode::kInvalidArgument,
                "{} contradicts --model: the model says it. Leave one of them out", flag_of(field));
  }
  return {};
}

Result<Deployment> DeploymentFlags::read_for(const std::string& device_name) const {
  Deployment deployment;
  workingset::Query& query = deployment.query;
  query.strict = strict_;
  workingset::ClassOptions options;
  CUBIST_RETURN_IF_ERROR(check_shape_flags());
  CUBIST_RETURN_IF_ERROR(read_lists(options));
  CUBIST_RETURN_IF_ERROR(read_rest(options.rest));
  CUBIST_ASSIGN_OR_RETURN(query.device, device(device_name.empty() ? device_ : device_name));
  std::int32_t longest = 0;
  if (model_.models.empty()) {
    if (model_.tp != "1") {
      return fail(StatusCode::kInvalidArgument,
                  "--tp divides a model's heads; without --model give the heads of one device");
    }
    CUBIST_ASSIGN_OR_RETURN(query.classes, workingset::make_classes(options));
  } else {
    CUBIST_ASSIGN_OR_RETURN(const presets::Library library, presets());
    bool all_known = true;
    for (const std::string& name : model_.models) {
      CUBIST_ASSIGN_OR_RETURN(const presets::ModelPreset model, library.resolve_model(name));
      CUBIST_ASSIGN_OR_RETURN(auto classes, workingset::make_classes(model, options));
      std::move(classes.begin(), classes.end(), std::back_inserter(query.classes));
      deployment.model += (deployment.model.empty() ? "" : ",") + model.name;
      all_known = all_known && model.max_kv_len > 0;
      longest = std::max(longest, model.max_kv_len);
    }
    if (!all_known) longest = 0;
  }
  CUBIST_RETURN_IF_ERROR(read_ranges(longest, query));
  return deployment;
}

}  // namespace cubist::tools
