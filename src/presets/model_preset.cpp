#include "presets/model_preset.h"

#include <algorithm>

#include "document/document.h"
#include "document/json_text.h"

// { "schema": "cubist.models", "schema_version": 1,
//   "models": [ { "name", "aliases": [..], "max_kv_len", "dtypes_kv": [..],
//                 "attention": [ { "name", "layers", "phases": [..], "num_q_heads", "num_kv_heads",
//                                  "head_dim_qk", "head_dim_vo", "window_left", "sinks", "is_mla",
//                                  "sparse_mla_topk", "sm_scale" } ],
//                 "sources": [..], "unsure": [..] } ] }

namespace cubist::presets {
namespace {

constexpr std::int64_t kMaxHeads = 65535;
constexpr std::int64_t kMaxHeadDim = 1024;
constexpr std::int64_t kMaxTokens = 2147483646;

void read_phases(const DocumentNode& node, std::array<bool, 3>& phases) {
  std::vector<std::string> names;
  if (!node.read_strings(names)) return;
  phases = {false, false, false};
  for (const std::string& name : names) {
    if (const std::optional<Phase> phase = parse_phase(name)) {
      phases[static_cast<std::size_t>(*phase)] = true;
    } else {
      node.complain(
          fmt::format("unknown phase {}; allowed are decode, context, ragged", in_quotes(name)));
    }
  }
}

void read_dtypes(const DocumentNode& node, std::vector<Dtype>& out) {
  std::vector<std::string> names;
  if (!node.read_strings(names)) return;
  for (const std::string& name : names) {
    const std::optional<Dtype> dtype = parse_dtype(name);
    if (dtype && *dtype != Dtype::kUnknown) {
      out.push_back(*dtype);
    } else {
      node.complain(
          fmt::format("unknown element type {}; allowed are fp16, bf16, e4m3, e5m2, "
                      "e2m1, int8, fp32, int32",
                      in_quotes(name)));
    }
  }
}

AttentionPreset read_attention(const DocumentNode& node) {
  AttentionPreset a;
  node.allow_only({"name", "layers", "phases", "num_q_heads", "num_kv_heads", "head_dim_qk",
                   "head_dim_vo", "window_left", "sinks", "is_mla", "sparse_mla_topk", "sm_scale"});
  node.required("name").read(a.name);
  node.required("layers").read_integer(a.layers, 1, kMaxHeads);
  read_phases(node.member("phases"), a.phases);
  node.required("num_q_heads").read_integer(a.num_q_heads, 1, kMaxHeads);
  node.required("num_kv_heads").read_integer(a.num_kv_heads, 1, kMaxHeads);
  node.required("head_dim_qk").read_integer(a.head_dim_qk, 1, kMaxHeadDim);
  a.head_dim_vo = a.head_dim_qk;
  node.member("head_dim_vo").read_integer(a.head_dim_vo, 1, kMaxHeadDim);
  node.member("window_left").read_integer(a.window_left, -1, kMaxTokens);
  node.member("sinks").read(a.sinks);
  node.member("is_mla").read(a.is_mla);
  node.member("sparse_mla_topk").read_integer(a.sparse_mla_topk, 0, kMaxTokens);
  double scale = 0;
  if (node.member("sm_scale").read_number(scale)) a.sm_scale = scale;
  return a;
}

ModelPreset read_model(const DocumentNode& node, std::string_view file_name) {
  ModelPreset model;
  model.file = file_name;
  node.allow_only({"name", "aliases", "max_kv_len", "dtypes_kv", "attention", "sources", "unsure"});
  node.required("name").read(model.name);
  node.member("aliases").read_strings(model.aliases);
  node.member("max_kv_len").read_integer(model.max_kv_len, 1, kMaxTokens);
  read_dtypes(node.member("dtypes_kv"), model.dtypes_kv);
  for (const DocumentNode& item : node.required("attention").items()) {
    model.attention.push_back(read_attention(item));
  }
  node.member("sources").read_strings(model.sources);
  node.member("unsure").read_strings(model.unsure);
  if (const Status status = validate_model_preset(model); !status) {
    node.complain(status.error().message());
  }
  return model;
}

}  // namespace

Status validate_model_preset(const ModelPreset& model) {
  const auto wrong = [&](std::string_view message) {
    return fail(StatusCode::kInvalidArgument, "model {}: {}", in_quotes(model.name), message);
  };
  if (model.name.empty()) return wrong("name is empty; give it one");
  if (model.attention.empty()) {
    return wrong("attention is empty; a preset needs at least one kind of layer");
  }
  for (const AttentionPreset& a : model.attention) {
    const std::string where = fmt::format("attention {}: ", in_quotes(a.name));
    if (std::none_of(a.phases.begin(), a.phases.end(), [](bool on) { return on; })) {
      return wrong(where + "phases is empty; name decode, context or ragged, or leave it out");
    }
    if (a.num_kv_heads < 1 || a.num_q_heads < 1 || a.num_q_heads % a.num_kv_heads != 0) {
      return wrong(where +
                   fmt::format("num_q_heads is {}; it must be a multiple of num_kv_heads, {}",
                               a.num_q_heads, a.num_kv_heads));
    }
    if (a.is_mla && a.num_kv_heads != 1) {
      return wrong(where + fmt::format("num_kv_heads is {}; absorbed MLA has one", a.num_kv_heads));
    }
    if (a.sparse_mla_topk != 0 && !a.is_mla) {
      return wrong(where + "sparse_mla_topk is set without is_mla");
    }
    if (a.sm_scale && !(*a.sm_scale > 0)) {
      return wrong(where + fmt::format("sm_scale is {}; it must be above 0", *a.sm_scale));
    }
  }
  return {};
}

Result<std::vector<ModelPreset>> parse_model_presets(std::string_view text,
                                                     std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  root.allow_only({"schema", "schema_version", "models"});
  std::string schema;
  if (root.required("schema").read(schema) && schema != "cubist.models") {
    root.member("schema").complain(
        fmt::format("is {}; a file of models says cubist.models", in_quotes(schema)));
  }
  std::int32_t version = 0;
  root.required("schema_version").read_integer(version, 1, 1);
  std::vector<ModelPreset> models;
  for (const DocumentNode& item : root.required("models").items()) {
    models.push_back(read_model(item, file_name));
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return models;
}

Status apply_attention(const AttentionPreset& a, std::int32_t tensor_parallel,
                       AttentionProblem& problem) {
  if (tensor_parallel < 1 || a.num_q_heads % tensor_parallel != 0) {
    return fail(StatusCode::kInvalidArgument,
                "tensor parallel size {} does not divide the {} query heads of attention {}",
                tensor_parallel, a.num_q_heads, in_quotes(a.name));
  }
  // Fewer KV heads than devices: each device keeps a copy of the head its query heads need.
  const std::int32_t kv_heads = std::max(1, a.num_kv_heads / tensor_parallel);
  const std::int32_t q_heads = a.num_q_heads / tensor_parallel;
  const bool even = a.num_kv_heads < tensor_parallel ? tensor_parallel % a.num_kv_heads == 0
                                                     : a.num_kv_heads % tensor_parallel == 0;
  if ((!even && !a.is_mla) || q_heads % kv_heads != 0) {
    return fail(StatusCode::kInvalidArgument,
                "tensor parallel size {} does not fit the {} KV heads of attention {}",
                tensor_parallel, a.num_kv_heads, in_quotes(a.name));
  }
  problem.num_q_heads = q_heads;
  problem.num_kv_heads = kv_heads;
  problem.head_dim_qk = a.head_dim_qk;
  problem.head_dim_vo = a.head_dim_vo;
  problem.window_left = a.window_left;
  problem.sinks = a.sinks;
  problem.is_mla = a.is_mla;
  problem.sparse_mla_topk = problem.phase == Phase::kDecode ? a.sparse_mla_topk : 0;
  return {};
}

}  // namespace cubist::presets
