#pragma once

#include <string>
#include <string_view>

#include "manifest/manifest.h"

namespace cubist::test {

inline std::string digest_text(char digit) { return std::string(64, digit); }

/// A small valid manifest; tests break it by replacing one piece of text.
inline std::string sample_manifest() {
  return R"({
  "schema": "cubist.manifest",
  "schema_version": 1,
  "name": "sample",
  "description": "two kernels of one pack",
  "packs": [
    {
      "name": "pack-a",
      "version": "1.2.3",
      "license": "Apache-2.0",
      "family": "trtllm_gen_fmha",
      "revision": "trtllm-gen-fmha-0.6.13",
      "param_layout": "trtllm-gen-fmha-1280",
      "sources": [
        {"type": "http", "location": "https://mirror.example/kernels/", "prefix": "fmha/"},
        {"type": "pip", "location": "some-cubins==1.2.3", "prefix": "some_cubins/fmha/"}
      ],
      "kernels": [
{"name":"kernel_a","sha256":")" +
         digest_text('a') +
         R"(","size":64656,"arch":"sm_100f","traits":{"dtype_q":"e4m3","dtype_kv":"e2m1","dtype_o":"bf16","head_dim_qk":64,"tile_q":128,"tile_kv":128,"step_q":256,"kernel_type":"context","mask_type":"causal","scheduler":"persistent","page_size":32,"threads":512,"smem":64656}},
{"name":"kernel_b","path":"sub/kernel_b.bin","sha256":")" +
         digest_text('b') +
         R"(","size":100,"arch":"sm_100a","traits":{"dtype_q":"int8","dtype_k":"int8","dtype_v":"e4m3","dtype_o":"bf16","head_dim_qk":576,"head_dim_vo":512,"head_dim_per_cta_v":256,"tile_q":64,"tile_kv":128,"kernel_type":"keeps","multi_ctas_kv_mode":"gmem_separate","qkv_layout":"separate","threads":384,"smem":0,"two_cta_mma":true,"sage_block_k":16}}
      ]
    }
  ]
}
)";
}

/// The sample with the first `from` replaced by `to`; `from` must be there.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace cubist::test
