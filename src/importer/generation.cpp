#include "importer/generation.h"

#include <array>

namespace cubist {
namespace {

struct KnownRelease {
  std::string_view artifact;
  std::string_view header_sha256;
  Generation generation;
};

using R = HeuristicRevision;
using L = ParamLayout;

// Artifact and header: the FMHA folder of each published flashinfer-cubin wheel. Layout: the
// parameter bytes its cubins declare. A revision only where the release's rules are implemented
// here; without one the layout promises no more than the size.
constexpr std::array<KnownRelease, 9> kReleases = {{
    // 0.4.1
    {"a72d85b019dc125b9f711300cb989430f762f5a6",
     "d26dbf837f40ff2dcd964094ab6e1b3f2424edda5979c313f5262655161fce98",
     {R::kNone, L::kTrtllmGenFmha1088}},
    // 0.5.0, 0.5.2
    {"463def7494c9fc6792b5aa5b5beef34025e247ac",
     "2b8a485f2af84768bc769e678eb6014a8181ad95a7ea9e699de5efca4b18ec6a",
     {R::kNone, L::kTrtllmGenFmha1088}},
    // 0.5.3
    {"1e49deb33ec20018ae0acf1d956a579578069da1",
     "dd4324a4140c622d858389cb50f80872e6c3c593e78b9b4ef838b5ff7b9a8a64",
     {R::kNone, L::kTrtllmGenFmha1152}},
    // 0.6.0, 0.6.3
    {"75d477a640f268ea9ad117cc596eb39245713b9e",
     "c9a1572617ab34e9073d9166c5673434651f47fcd9cadf9320a7c99d7c6b9627",
     {R::kNone, L::kTrtllmGenFmha1152}},
    // 0.6.6
    {"f1ed60e5666a7620683a8c34a41c850a25029b35",
     "c31ed20605e8e7caad4d8301fedccf681520275813126c4660f8f933954cd78b",
     {R::kNone, L::kTrtllmGenFmha1152}},
    // 0.6.8, 0.6.9
    {"55bba55929d4093682e32d817bd11ffb0441c749",
     "0a3102bc405a28760dc0e4184fe2e508a9fd3315cefd2b48108704577427a125",
     {R::kTrtllmGenFmha_0_6_8, L::kTrtllmGenFmha1152}},
    // 0.6.10
    {"134850621dbbd55ed6b0c3fa7c29b968136c05ef",
     "54af6fc0285f244df04dd70f461a8d57704e41df88ce5b9c2599047b889f7e97",
     {R::kNone, L::kTrtllmGenFmha1152}},
    // 0.6.11
    {"1d876ee612888821b168c25ffa75a9dcbb963aaa",
     "ee3461ab48640d4f6872cf0eea134f6130938e316b5f9099e5fa8575a0b6996d",
     {R::kNone, L::kTrtllmGenFmha1152}},
    // 0.6.12, 0.6.13
    {"158f6fa11ef139a098cfddcdddce73ca99d164ad",
     "f6781dfd70669167b7356fa77a805e7306443348a4b5d6a93732a27ebbb3b418",
     {R::kTrtllmGenFmha_0_6_13, L::kTrtllmGenFmha1280}},
}};

}  // namespace

std::optional<Generation> find_generation(const Sha256Digest& header, std::string_view artifact) {
  const std::string digest = header.hex();
  for (const KnownRelease& release : kReleases) {
    if (release.header_sha256 == digest) return release.generation;
  }
  for (const KnownRelease& release : kReleases) {
    if (release.artifact == artifact) return release.generation;
  }
  return std::nullopt;
}

}  // namespace cubist
