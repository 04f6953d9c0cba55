#include "presets/hf_config.h"

#include <cmath>
#include <string>

#include "support/catch.h"

using cubist::Phase;
using cubist::presets::AttentionPreset;
using cubist::presets::load_hf_config;
using cubist::presets::ModelPreset;
using cubist::presets::read_hf_config;

namespace {

ModelPreset read(const std::string& name) {
  const std::string path = std::string(CUBIST_SOURCE_DIR "/tests/unit/presets/configs/") + name;
  auto model = load_hf_config(path + ".json");
  if (!model) FAIL(model.error().message());
  return *model;
}

struct Shape {
  std::int32_t layers, q, kv, dim, window;
};

void check_shape(const AttentionPreset& a, const Shape& want) {
  CHECK(a.layers == want.layers);
  CHECK(a.num_q_heads == want.q);
  CHECK(a.num_kv_heads == want.kv);
  CHECK(a.head_dim_qk == want.dim);
  CHECK(a.head_dim_vo == want.dim);
  CHECK(a.window_left == want.window);
}

void check_full_only(const std::string& name, const Shape& want, std::int32_t max_kv_len) {
  INFO(name);
  const ModelPreset model = read(name);
  REQUIRE(model.attention.size() == 1);
  check_shape(model.attention[0], want);
  CHECK_FALSE(model.attention[0].sinks);
  CHECK_FALSE(model.attention[0].sm_scale.has_value());
  CHECK(model.max_kv_len == max_kv_len);
}

std::string error_of(const std::string& text) {
  const auto model = read_hf_config(text, "config.json");
  return model ? "" : model.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("configs without windows give one kind of layer") {
  check_full_only("llama", {32, 32, 8, 128, -1}, 131072);
  check_full_only("qwen3", {64, 64, 8, 128, -1}, 40960);
  check_full_only("qwen3_moe", {48, 32, 4, 128, -1}, 40960);
  check_full_only("mixtral", {56, 48, 8, 128, -1}, 65536);
  check_full_only("phi3", {32, 24, 8, 128, -1}, 131072);
}

TEST_CASE("hybrid configs give their attention layers, not the linear ones") {
  check_full_only("qwen3_next", {12, 16, 2, 256, -1}, 262144);
  check_full_only("qwen3_5", {16, 24, 4, 256, -1}, 262144);
}

TEST_CASE("a window on every layer, or from one layer on, is read") {
  const ModelPreset mistral = read("mistral");
  REQUIRE(mistral.attention.size() == 1);
  check_shape(mistral.attention[0], {32, 32, 8, 128, 4095});
  const ModelPreset qwen2 = read("qwen2_window");
  REQUIRE(qwen2.attention.size() == 2);
  check_shape(qwen2.attention[0], {8, 28, 4, 128, 4095});
  check_shape(qwen2.attention[1], {20, 28, 4, 128, -1});
}

TEST_CASE("gpt-oss alternates windows of 128 keys and has sinks, with or without layer_types") {
  const ModelPreset big = read("gpt_oss");
  REQUIRE(big.attention.size() == 2);
  check_shape(big.attention[0], {18, 64, 8, 64, 127});
  check_shape(big.attention[1], {18, 64, 8, 64, -1});
  CHECK(big.attention[0].sinks);
  CHECK(big.attention[1].sinks);
  const ModelPreset small = read("gpt_oss_no_list");
  REQUIRE(small.attention.size() == 2);
  check_shape(small.attention[0], {12, 64, 8, 64, 127});
  check_shape(small.attention[1], {12, 64, 8, 64, -1});
}

TEST_CASE("gemma 3 has five windowed layers for each full one and its own scale") {
  const ModelPreset one = read("gemma3_1b");
  REQUIRE(one.attention.size() == 2);
  check_shape(one.attention[0], {22, 4, 1, 256, 511});
  check_shape(one.attention[1], {4, 4, 1, 256, -1});
  CHECK_FALSE(one.attention[0].sm_scale.has_value());
  // The published file leaves heads and head size to the library's defaults.
  const ModelPreset four = read("gemma3_4b");
  REQUIRE(four.attention.size() == 2);
  check_shape(four.attention[0], {29, 8, 4, 256, 1023});
  check_shape(four.attention[1], {5, 8, 4, 256, -1});
  const ModelPreset large = read("gemma3_27b");
  check_shape(large.attention.at(0), {52, 32, 16, 128, 1023});
  check_shape(large.attention.at(1), {10, 32, 16, 128, -1});
  CHECK(large.attention[0].sm_scale.value() == Approx(0.0771517).epsilon(1e-5));
}

TEST_CASE("gemma 4 has other heads in its full layers") {
  const ModelPreset large = read("gemma4");
  check_shape(large.attention.at(0), {50, 32, 16, 256, 1023});
  check_shape(large.attention.at(1), {10, 32, 4, 512, -1});
  CHECK(large.attention[1].sm_scale == 1.0);
  const ModelPreset small = read("gemma4_e2b");
  check_shape(small.attention.at(0), {28, 8, 1, 256, 511});
  check_shape(small.attention.at(1), {7, 8, 1, 512, -1});
}

TEST_CASE("MLA configs give the absorbed decode shape and the expanded prefill shape") {
  const ModelPreset model = read("deepseek_v3");
  REQUIRE(model.attention.size() == 2);
  const AttentionPreset& decode = model.attention[0];
  CHECK(decode.num_q_heads == 128);
  CHECK(decode.num_kv_heads == 1);
  CHECK(decode.head_dim_qk == 576);
  CHECK(decode.head_dim_vo == 512);
  CHECK(decode.is_mla);
  CHECK(decode.serves(Phase::kDecode));
  CHECK_FALSE(decode.serves(Phase::kRagged));
  CHECK(decode.sm_scale.value() == Approx(0.135234).epsilon(1e-5));
  const AttentionPreset& prefill = model.attention[1];
  CHECK(prefill.num_kv_heads == 128);
  CHECK(prefill.head_dim_qk == 192);
  CHECK(prefill.head_dim_vo == 128);
  CHECK(prefill.serves(Phase::kRagged));
  CHECK_FALSE(prefill.serves(Phase::kDecode));
  CHECK(read("deepseek_v32").attention.at(0).sparse_mla_topk == 2048);
  const ModelPreset kimi = read("kimi_k2");
  CHECK(kimi.attention.at(0).num_q_heads == 64);
  CHECK(kimi.attention.at(0).sm_scale.value() == Approx(0.130861).epsilon(1e-5));
}

TEST_CASE("siblings of a family are read like it") {
  const auto read_text = [](const std::string& text) {
    auto model = read_hf_config(text, "m/config.json");
    if (!model) FAIL(model.error().message());
    return *model;
  };
  const ModelPreset hybrid = read_text(
      R"({"model_type":"qwen3_5_moe","text_config":{"model_type":"qwen3_5_moe_text",
          "num_hidden_layers":60,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":256,
          "full_attention_interval":4,"max_position_embeddings":262144}})");
  REQUIRE(hybrid.attention.size() == 1);
  check_shape(hybrid.attention[0], {15, 32, 2, 256, -1});
  const ModelPreset moe = read_text(
      R"({"model_type":"qwen2_moe","num_hidden_layers":24,"num_attention_heads":16,
          "num_key_value_heads":16,"hidden_size":2048,"use_sliding_window":false,
          "sliding_window":32768,"max_window_layers":21})");
  REQUIRE(moe.attention.size() == 1);
  check_shape(moe.attention[0], {24, 16, 16, 128, -1});
  const ModelPreset unified = read_text(
      R"({"model_type":"gemma4_unified","text_config":{"num_hidden_layers":6,
          "num_attention_heads":8,"num_key_value_heads":2,"head_dim":256,"global_head_dim":512,
          "sliding_window":512}})");
  REQUIRE(unified.attention.size() == 2);
  check_shape(unified.attention[0], {5, 8, 2, 256, 511});
  check_shape(unified.attention[1], {1, 8, 2, 512, -1});
  CHECK(unified.attention[0].sm_scale == 1.0);
  const ModelPreset nested = read_text(
      R"({"model_type":"kimi_k25","text_config":{"model_type":"kimi_k2","num_hidden_layers":61,
          "num_attention_heads":64,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
          "v_head_dim":128,"rope_scaling":{"factor":64.0,"mscale_all_dim":1.0}}})");
  CHECK(nested.attention.at(0).head_dim_qk == 576);
  CHECK(nested.attention.at(0).sm_scale.value() == Approx(0.144680).epsilon(1e-5));
}

TEST_CASE("configs that lack or contradict fields are refused by the field's name") {
  CHECK(contains(error_of("{}"), "/model_type: the key is missing"));
  CHECK(contains(error_of("[]"), "expected an object"));
  CHECK(contains(error_of(R"({"model_type":"mamba2"})"), "'mamba2' is not known here"));
  CHECK(contains(error_of(R"({"model_type":"llama","num_hidden_layers":2})"),
                 "/num_attention_heads: the key is missing"));
  CHECK(contains(error_of(R"({"model_type":"llama","num_attention_heads":4,"hidden_size":64})"),
                 "/num_hidden_layers: the key is missing"));
  CHECK(
      contains(error_of(R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":4})"),
               "/hidden_size: the key is missing"));
  CHECK(contains(error_of(R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":3,
                              "hidden_size":64})"),
                 "head_dim is missing and does not follow"));
  CHECK(contains(error_of(R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":32,
                              "num_key_value_heads":5,"hidden_size":4096})"),
                 "num_q_heads is 32; it must be a multiple of num_kv_heads, 5"));
  CHECK(contains(error_of(R"({"model_type":"gpt_oss","num_hidden_layers":3,"num_attention_heads":64,
                              "num_key_value_heads":8,"sliding_window":128,
                              "layer_types":["full_attention"]})"),
                 "has 1 entries and num_hidden_layers is 3"));
  CHECK(contains(error_of(R"({"model_type":"gpt_oss","num_hidden_layers":1,"num_attention_heads":64,
                              "num_key_value_heads":8,"layer_types":["sliding_attention"]})"),
                 "/sliding_window: is missing or off"));
  CHECK(contains(error_of(R"({"model_type":"qwen3","num_hidden_layers":1,"num_attention_heads":8,
                              "head_dim":128,"layer_types":["chunked_attention"]})"),
                 "/layer_types/0: 'chunked_attention' is no layer type"));
  CHECK(contains(error_of(R"({"model_type":"deepseek_v3","num_hidden_layers":1,
                              "num_attention_heads":8,"qk_rope_head_dim":64})"),
                 "/kv_lora_rank: the key is missing"));
  CHECK(contains(error_of(R"({"model_type":"llama","num_hidden_layers":-3,"num_attention_heads":8,
                              "head_dim":128})"),
                 "/num_hidden_layers: is -3"));
  CHECK(contains(error_of(R"({"model_type":"llama","num_hidden_layers":2,"num_attention_heads":0,
                              "head_dim":128})"),
                 "/num_attention_heads: is 0"));
  CHECK(contains(error_of(R"({"model_type":"qwen3_next","num_hidden_layers":3,
                              "num_attention_heads":8,"head_dim":256})"),
                 "attention is empty"));
  CHECK(contains(error_of(R"({"model_type":"gemma3_text","num_hidden_layers":2,
                              "query_pre_attn_scalar":0})"),
                 "/query_pre_attn_scalar: must be above 0"));
}
