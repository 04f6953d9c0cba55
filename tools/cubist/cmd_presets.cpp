#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "presets/library.h"
#include "print_json.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;
using presets::AttentionPreset;
using presets::DevicePreset;
using presets::Library;
using presets::ModelPreset;

struct PresetArguments {
  std::vector<std::string> names;
  std::vector<std::string> files;
};

constexpr const char* kPresetsHelp =
    R"(Lists the models and GPUs that are known by name, and where their numbers come from.

A model's preset says which attention shapes its layers ask for; a device's preset says
what selection needs to know of a GPU. Both are data (docs/presets.md): add your own
files with --presets, or point at a Hugging Face config.json.

Examples:
  cubist presets
  cubist presets gpt-oss-120b b200
  cubist presets ~/models/my-model/config.json
  cubist presets --presets lab.json lab-gpu --json)";

std::string phases_of(const AttentionPreset& attention) {
  std::string out;
  for (const Phase phase : {Phase::kDecode, Phase::kContext, Phase::kRagged}) {
    if (attention.serves(phase)) out.append(out.empty() ? "" : ",").append(to_string(phase));
  }
  return out;
}

Json attention_json(const AttentionPreset& a) {
  Json phases = Json::array();
  for (const Phase phase : {Phase::kDecode, Phase::kContext, Phase::kRagged}) {
    if (a.serves(phase)) phases.push_back(to_string(phase));
  }
  Json json = {{"name", a.name},
               {"layers", a.layers},
               {"phases", std::move(phases)},
               {"num_q_heads", a.num_q_heads},
               {"num_kv_heads", a.num_kv_heads},
               {"head_dim_qk", a.head_dim_qk},
               {"head_dim_vo", a.head_dim_vo},
               {"window_left", a.window_left},
               {"sinks", a.sinks},
               {"is_mla", a.is_mla},
               {"sparse_mla_topk", a.sparse_mla_topk}};
  if (a.sm_scale) json["sm_scale"] = *a.sm_scale;
  return json;
}

Json model_json(const ModelPreset& model) {
  Json attention = Json::array();
  for (const AttentionPreset& a : model.attention) attention.push_back(attention_json(a));
  Json dtypes = Json::array();
  for (const Dtype dtype : model.dtypes_kv) dtypes.push_back(to_string(dtype));
  Json json = {{"name", model.name}, {"aliases", model.aliases}};
  json["max_kv_len"] = model.max_kv_len > 0 ? Json(model.max_kv_len) : Json();
  json["dtypes_kv"] = std::move(dtypes);
  json["attention"] = std::move(attention);
  json["sources"] = model.sources;
  json["unsure"] = model.unsure;
  json["file"] = model.file;
  return json;
}

Json device_json(const DevicePreset& device) {
  const auto known = [](std::int64_t value) { return value > 0 ? Json(value) : Json(); };
  Json clusters = Json::object();
  for (std::size_t size = 2; size < device.profile.max_active_clusters.size(); ++size) {
    const std::int32_t answer = device.profile.max_active_clusters[size];
    if (answer >= 0) clusters[std::to_string(size)] = answer;
  }
  return {{"name", device.profile.name},
          {"aliases", device.aliases},
          {"sm", device.profile.sm},
          {"num_sms", device.profile.num_sms},
          {"max_smem_optin", device.profile.max_smem_optin},
          {"max_active_clusters", std::move(clusters)},
          {"l2_bytes", known(device.l2_bytes)},
          {"memory_bytes", known(device.memory_bytes)},
          {"memory_gb_per_s", known(device.memory_gb_per_s)},
          {"host", device.host.empty() ? Json() : Json(device.host)},
          {"sources", device.sources},
          {"unsure", device.unsure},
          {"file", device.file}};
}

std::string window_text(const AttentionPreset& a) {
  return a.window_left < 0 ? "-" : std::to_string(a.window_left + 1);
}

void print_table(const Library& library) {
  std::printf("%-24s %-12s %7s %9s %8s %7s  %s\n", "model", "layers", "q heads", "kv heads",
              "head dim", "window", "phases");
  for (const ModelPreset& model : library.models()) {
    std::string name = model.name;
    for (const AttentionPreset& a : model.attention) {
      const std::string dims = a.head_dim_qk == a.head_dim_vo
                                   ? std::to_string(a.head_dim_qk)
                                   : fmt::format("{}/{}", a.head_dim_qk, a.head_dim_vo);
      std::printf("%-24s %-12s %7d %9d %8s %7s  %s%s\n", name.c_str(),
                  fmt::format("{} {}", a.layers, a.name).c_str(), a.num_q_heads, a.num_kv_heads,
                  dims.c_str(), window_text(a).c_str(), phases_of(a).c_str(),
                  a.sinks ? " sinks" : "");
      name.clear();
    }
  }
  std::printf("\n%-24s %6s %5s %14s\n", "device", "sm", "SMs", "smem per block");
  for (const DevicePreset& device : library.devices()) {
    std::printf("%-24s %6u %5d %14u\n", device.profile.name.c_str(), device.profile.sm,
                device.profile.num_sms, device.profile.max_smem_optin);
  }
}

void print_notes(const std::vector<std::string>& sources, const std::vector<std::string>& unsure) {
  for (const std::string& source : sources) std::printf("  source  %s\n", source.c_str());
  for (const std::string& note : unsure) std::printf("  unsure  %s\n", note.c_str());
}

void print_model(const ModelPreset& model) {
  std::printf("%s (model; longest context %s)\n", model.name.c_str(),
              model.max_kv_len > 0 ? std::to_string(model.max_kv_len).c_str() : "not known");
  for (const AttentionPreset& a : model.attention) {
    std::printf("  %d layers '%s': %d q heads, %d kv heads, head_dim %d/%d, window %s%s%s%s; %s\n",
                a.layers, a.name.c_str(), a.num_q_heads, a.num_kv_heads, a.head_dim_qk,
                a.head_dim_vo, window_text(a).c_str(), a.sinks ? ", sinks" : "",
                a.sparse_mla_topk > 0 ? fmt::format(", top-k {}", a.sparse_mla_topk).c_str() : "",
                a.sm_scale ? fmt::format(", sm_scale {:.6g}", *a.sm_scale).c_str() : "",
                phases_of(a).c_str());
  }
  std::string dtypes;
  for (const Dtype dtype : model.dtypes_kv) dtypes.append(" ").append(to_string(dtype));
  if (!dtypes.empty()) std::printf("  KV cache types in use:%s\n", dtypes.c_str());
  print_notes(model.sources, model.unsure);
}

void print_device(const DevicePreset& device) {
  const DeviceProfile& p = device.profile;
  std::printf("%s (device; compute capability %u.%u)\n", p.name.c_str(), p.sm / 10, p.sm % 10);
  std::printf("  %d SMs, %u bytes of shared memory per block\n", p.num_sms, p.max_smem_optin);
  if (device.l2_bytes > 0) {
    std::printf("  L2 %lld bytes\n", static_cast<long long>(device.l2_bytes));
  }
  if (device.memory_bytes > 0) {
    std::printf("  memory %lld bytes\n", static_cast<long long>(device.memory_bytes));
  }
  if (device.memory_gb_per_s > 0) {
    std::printf("  memory bandwidth %lld GB/s\n", static_cast<long long>(device.memory_gb_per_s));
  }
  print_notes(device.sources, device.unsure);
}

/// The named presets; a name may be a model's or a device's.
Status collect(const Library& library, const std::vector<std::string>& names,
               std::vector<ModelPreset>& models, std::vector<DevicePreset>& devices) {
  for (const std::string& name : names) {
    if (Result<DevicePreset> device = library.find_device(name)) {
      devices.push_back(std::move(*device));
      continue;
    }
    CUBIST_ASSIGN_OR_RETURN(ModelPreset model, library.resolve_model(name));
    models.push_back(std::move(model));
  }
  return {};
}

Status run_presets(const PresetArguments& arguments, const CommonOptions& common) {
  CUBIST_ASSIGN_OR_RETURN(const Library library,
                          Library::load(presets::default_preset_folder(), arguments.files));
  std::vector<ModelPreset> models;
  std::vector<DevicePreset> devices;
  CUBIST_RETURN_IF_ERROR(collect(library, arguments.names, models, devices));
  const bool all = arguments.names.empty();
  if (common.json) {
    Json document = {{"models", Json::array()}, {"devices", Json::array()}};
    for (const ModelPreset& m : all ? library.models() : models) {
      document["models"].push_back(model_json(m));
    }
    for (const DevicePreset& d : all ? library.devices() : devices) {
      document["devices"].push_back(device_json(d));
    }
    print_json(document);
    return {};
  }
  if (all) print_table(library);
  for (const ModelPreset& m : models) print_model(m);
  for (const DevicePreset& d : devices) print_device(d);
  return {};
}

}  // namespace

void add_presets_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("presets", "List models and GPUs known by name");
  command->footer(kPresetsHelp);
  auto arguments = std::make_shared<PresetArguments>();
  command->add_option("name", arguments->names,
                      "Models or devices to show in full; also a config.json or its folder");
  command->add_option("--presets", arguments->files, "A preset file of your own (may be repeated)")
      ->allow_extra_args(false);
  add_common_options(*command, context.common);
  command->callback([=] {
    if (Status status = run_presets(*arguments, context.common); !status) {
      context.exit_code = report_error(context.common, status.error());
    }
  });
}

}  // namespace cubist::tools
