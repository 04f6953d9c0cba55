#pragma once

#include <string>

#include "manifest/manifest.h"

namespace cubist::test {

/// A valid manifest of that many kernels, no two alike: two packs, one with a source of each kind
/// of text. 4,000 kernels are more than 1 MiB of JSON.
inline Manifest large_manifest(std::size_t num_kernels) {
  Manifest manifest;
  manifest.name = "large";
  manifest.description = "made for a test";
  manifest.serial = 7;
  manifest.expires = "2099-12-31";
  manifest.packs.resize(2);
  manifest.packs[0].name = "first";
  manifest.packs[0].version = "1.0";
  manifest.packs[0].license = "Apache-2.0";
  manifest.packs[0].sources = {{Source::Kind::kHttp, "https://example.org/pack", "fmha/"},
                               {Source::Kind::kFolder, "kernels", ""}};
  manifest.packs[1].name = "second";
  for (std::size_t i = 0; i < num_kernels; ++i) {
    KernelRecord record;
    record.name =
        "fmhaSm100aKernel_QE4m3KvE4m3OBfloat16H128PagedKvCausalVarSeqQ128Kv128PersistentContextOf" +
        std::to_string(i);
    record.path = i % 5 == 0 ? "folder/" + record.name : record.name + ".cubin";
    for (std::size_t byte = 0; byte < 4; ++byte) {
      record.sha256.bytes[byte] = static_cast<std::uint8_t>((i + 1) >> 8 * byte);
    }
    record.sha256.bytes[31] = 0xa5;
    record.size_bytes = 1000 + i;
    KernelTraits& traits = record.traits;
    traits.dtype_q = traits.dtype_k = traits.dtype_v = Dtype::kE4m3;
    traits.dtype_o = i % 2 == 0 ? Dtype::kBf16 : Dtype::kFp16;
    traits.arch = {100, static_cast<SmArch::Kind>(i % 3)};
    traits.head_dim_qk = traits.head_dim_vo = traits.head_dim_per_cta_v = 128;
    traits.tile_q = traits.step_q = 128;
    traits.tile_kv = traits.step_kv = 128;
    traits.threads = static_cast<std::uint16_t>(128 + i % 512);
    traits.smem = static_cast<std::uint32_t>(60000 + i);
    traits.page_size = static_cast<std::uint16_t>(i % 65);
    traits.mask_type = static_cast<MaskType>(i % 4);
    traits.skip_softmax = i % 7 == 0;
    manifest.packs[i % 2].kernels.push_back(std::move(record));
  }
  return manifest;
}

}  // namespace cubist::test
