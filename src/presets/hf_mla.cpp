#include <cmath>

#include "presets/hf_fields.h"

namespace cubist::presets {
namespace {

/// YaRN of DeepSeek: the softmax scale grows by (0.1 * mscale_all_dim * ln(factor) + 1)^2.
/// Source: DeepSeek-V3 inference/model.py.
double softmax_scale(const HfFields& fields, std::int32_t head_dim) {
  double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  DocumentNode rope = fields.node.member("rope_scaling");
  if (!rope.present()) rope = fields.node.member("rope_parameters");
  double factor = 1;
  double all_dim = 0;
  if (!rope.is_object() || !rope.member("factor").read_number(factor)) return scale;
  rope.member("mscale_all_dim").read_number(all_dim);
  if (factor > 1 && all_dim > 0) {
    const double mscale = 0.1 * all_dim * std::log(factor) + 1;
    scale *= mscale * mscale;
  }
  return scale;
}

}  // namespace

std::vector<AttentionPreset> read_mla_layers(const HfFields& fields) {
  const std::int32_t layers = fields.required("num_hidden_layers", 65535);
  const std::int32_t heads = fields.required("num_attention_heads", 65535);
  const std::int32_t latent = fields.required("kv_lora_rank");
  const std::int32_t rope = fields.required("qk_rope_head_dim");
  const std::int32_t nope = fields.required("qk_nope_head_dim");
  const std::int32_t value = fields.required("v_head_dim");
  const double scale = softmax_scale(fields, nope + rope);

  AttentionPreset absorbed;
  absorbed.name = "mla";
  absorbed.layers = layers;
  absorbed.phases = {true, false, false};
  absorbed.num_q_heads = heads;
  absorbed.num_kv_heads = 1;
  absorbed.head_dim_qk = latent + rope;
  absorbed.head_dim_vo = latent;
  absorbed.is_mla = true;
  absorbed.sm_scale = scale;
  absorbed.sparse_mla_topk = fields.optional("index_topk", 0);
  if (fields.model_type == "deepseek_v32" && absorbed.sparse_mla_topk == 0) {
    fields.node.required("index_topk");
  }

  AttentionPreset expanded;
  expanded.name = "mla prefill";
  expanded.layers = layers;
  expanded.phases = {false, false, true};
  expanded.num_q_heads = heads;
  expanded.num_kv_heads = heads;
  expanded.head_dim_qk = nope + rope;
  expanded.head_dim_vo = value;
  expanded.sm_scale = scale;
  return {absorbed, expanded};
}

}  // namespace cubist::presets
