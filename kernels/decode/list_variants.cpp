// Prints the decode kernels there are for one architecture, a line each, for scripts/build-kernels:
//   name source type_q type_kv dtype_q dtype_kv dtype_o head_dim head_dim_vo tile_q tile_kv threads
//   smem scheduler
// Usage: list_variants ARCH SMEM_LIMIT, with SMEM_LIMIT one of those below (bytes).

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mla_variant.h"
#include "stream_variant.h"
#include "transposed_variant.h"
#include "variant.h"

namespace {

using cubist_decode::MlaVariant;
using cubist_decode::output_of;
using cubist_decode::StreamVariant;
using cubist_decode::TransposedVariant;
using cubist_decode::Type;
using cubist_decode::Variant;

const char* type_name(Type type) {
  return type == Type::kBf16 ? "kBf16" : type == Type::kFp16 ? "kFp16" : "kE4m3";
}
const char* dtype_name(Type type) {
  return type == Type::kBf16 ? "bf16" : type == Type::kFp16 ? "fp16" : "e4m3";
}

constexpr const char* kStatic = "decode.cu";

template <class V>
void print(const char* arch, const char* source = kStatic) {
  if (!V::kFits) return;
  const bool is_stream = source != kStatic;
  const char* q = dtype_name(V::kQ);
  const char* kv = dtype_name(V::kKv);
  const char* o = dtype_name(output_of(V::kQ));
  std::printf("cubist_decode_q_%s_kv_%s_o_%s_h%d_q%d_%s%s %s %s %s %s %s %s %d %d %d %d %d %d %s\n",
              q, kv, o, V::kHeadDim, V::kTileQ, is_stream ? "stream_" : "", arch, source,
              type_name(V::kQ), type_name(V::kKv), q, kv, o, V::kHeadDim, V::kHeadDim, V::kTileQ,
              V::kTileKv, V::kThreads, V::kSmemBytes, is_stream ? "persistent" : "static");
}

template <Type kTypeQ, Type kTypeKv>
void print_mla(const char* arch) {
  using V = MlaVariant<kTypeQ, kTypeKv>;
  static_assert(V::kFits);
  const char* q = dtype_name(kTypeQ);
  const char* kv = dtype_name(kTypeKv);
  std::printf(
      "cubist_decode_q_%s_kv_%s_o_%s_h%dv%d_q%d_stream_%s mla_decode.cu %s %s %s %s %s %d %d "
      "%d %d %d %d persistent\n",
      q, kv, q, V::kHeadDimQk, V::kHeadDimVo, V::kTileQ, arch, type_name(kTypeQ),
      type_name(kTypeKv), q, kv, q, V::kHeadDimQk, V::kHeadDimVo, V::kTileQ, V::kTileKv,
      V::kThreads, V::kSmemBytes);
}

template <Type kQ, Type kKv, int kHeadDim, int kSmemLimit>
void print_tiles(const char* arch) {
  print<Variant<kQ, kKv, kHeadDim, 16, kSmemLimit>>(arch);
  print<Variant<kQ, kKv, kHeadDim, 32, kSmemLimit>>(arch);
  print<Variant<kQ, kKv, kHeadDim, 64, kSmemLimit>>(arch);
  // Twice as many sums a thread as at 128 elements: no registers are left for more rows.
  if constexpr (kHeadDim <= 128) print<Variant<kQ, kKv, kHeadDim, 128, kSmemLimit>>(arch);
}

template <Type kQ, Type kKv, int kSmemLimit>
void print_heads(const char* arch) {
  print_tiles<kQ, kKv, 64, kSmemLimit>(arch);
  print_tiles<kQ, kKv, 128, kSmemLimit>(arch);
  print_tiles<kQ, kKv, 256, kSmemLimit>(arch);
}

template <int kSmemLimit>
void print_all(const char* arch) {
  print_heads<Type::kBf16, Type::kBf16, kSmemLimit>(arch);
  print_heads<Type::kBf16, Type::kE4m3, kSmemLimit>(arch);
  print_heads<Type::kFp16, Type::kFp16, kSmemLimit>(arch);
  print_heads<Type::kE4m3, Type::kE4m3, kSmemLimit>(arch);
}

/// TMA and warpgroup MMA: this one architecture alone. A tile's rows or columns, by tile_q.
template <Type kQ, Type kKv, int kHeadDim, int... kTiles>
void print_streams(const char* arch) {
  (print<StreamVariant<kQ, kKv, kHeadDim, kTiles>>(arch, "stream_decode.cu"), ...);
}

template <Type kQ, Type kKv, int kHeadDim, int... kTiles>
void print_transposed(const char* arch) {
  (print<TransposedVariant<kQ, kKv, kHeadDim, kTiles>>(arch, "transposed_decode.cu"), ...);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[2], "232448") == 0) {
    print_all<232448>(argv[1]);
  } else if (argc == 3 && std::strcmp(argv[2], "166912") == 0) {
    print_all<166912>(argv[1]);
  } else if (argc == 3 && std::strcmp(argv[2], "101376") == 0) {
    print_all<101376>(argv[1]);
  } else {
    std::fprintf(stderr, "usage: list_variants ARCH 232448|166912|101376\n");
    return EXIT_FAILURE;
  }
  if (std::strcmp(argv[1], "sm90a") == 0) {
    print_streams<Type::kBf16, Type::kBf16, 64, 64, 128>(argv[1]);
    print_streams<Type::kBf16, Type::kBf16, 128, 64, 128>(argv[1]);
    print_mla<Type::kBf16, Type::kBf16>(argv[1]);
    print_streams<Type::kFp16, Type::kFp16, 64, 64, 128>(argv[1]);
    print_streams<Type::kFp16, Type::kFp16, 128, 64, 128>(argv[1]);
    print_mla<Type::kFp16, Type::kFp16>(argv[1]);
    print_streams<Type::kBf16, Type::kE4m3, 64, 64, 128>(argv[1]);
    print_streams<Type::kBf16, Type::kE4m3, 128, 128>(argv[1]);
    print_streams<Type::kE4m3, Type::kE4m3, 64, 64, 128>(argv[1]);
    print_streams<Type::kE4m3, Type::kE4m3, 128, 128>(argv[1]);
    print_mla<Type::kBf16, Type::kE4m3>(argv[1]);
    print_transposed<Type::kBf16, Type::kBf16, 64, 8, 16, 24, 32>(argv[1]);
    print_transposed<Type::kBf16, Type::kBf16, 128, 8, 16, 24, 32>(argv[1]);
    print_transposed<Type::kFp16, Type::kFp16, 64, 8, 16, 24, 32>(argv[1]);
    print_transposed<Type::kFp16, Type::kFp16, 128, 8, 16, 24, 32>(argv[1]);
    print_transposed<Type::kBf16, Type::kE4m3, 64, 8, 16, 32>(argv[1]);
    print_transposed<Type::kBf16, Type::kE4m3, 128, 8, 16, 24, 32, 48>(argv[1]);
    print_transposed<Type::kE4m3, Type::kE4m3, 64, 8, 16, 32>(argv[1]);
    print_transposed<Type::kE4m3, Type::kE4m3, 128, 8, 16, 24, 32, 48>(argv[1]);
  }
  return EXIT_SUCCESS;
}
