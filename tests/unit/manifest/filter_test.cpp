#include "manifest/filter.h"

#include <string>
#include <vector>

#include "manifest/parse.h"
#include "manifest/validate.h"
#include "sample_manifest.h"
#include "support/catch.h"

namespace cubist {
namespace {

std::vector<std::string> names_of(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const Pack& pack : manifest.packs) {
    for (const KernelRecord& record : pack.kernels) names.push_back(record.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("each filter chooses what it says") {
  const Manifest manifest = parse_manifest(test::sample_manifest(), "m.json").value();
  struct Case {
    void (*set)(KernelFilter&);
    Names names;
  };
  const std::vector<Case> cases = {
      {[](KernelFilter&) {}, {"kernel_a", "kernel_b"}},
      {[](KernelFilter& f) { f.archs = {"sm_100f"}; }, {"kernel_a"}},
      {[](KernelFilter& f) { f.archs = {"sm_100a"}; }, {"kernel_b"}},
      {[](KernelFilter& f) { f.archs = {"sm_100"}; }, {"kernel_a", "kernel_b"}},
      {[](KernelFilter& f) { f.archs = {"103"}; }, {"kernel_a"}},
      {[](KernelFilter& f) {
         f.archs = {"sm_90", "103"};
       },
       {"kernel_a"}},
      {[](KernelFilter& f) { f.archs = {"nonsense"}; }, {}},
      {[](KernelFilter& f) { f.dtypes_q = {Dtype::kInt8}; }, {"kernel_b"}},
      {[](KernelFilter& f) { f.dtypes_kv = {Dtype::kE4m3}; }, {"kernel_b"}},
      {[](KernelFilter& f) { f.dtypes_kv = {Dtype::kInt8}; }, {"kernel_b"}},
      {[](KernelFilter& f) { f.dtypes_kv = {Dtype::kE2m1}; }, {"kernel_a"}},
      {[](KernelFilter& f) { f.dtypes_o = {Dtype::kFp16}; }, {}},
      {[](KernelFilter& f) {
         f.head_dims = {{64, {}}};
       },
       {"kernel_a"}},
      {[](KernelFilter& f) {
         f.head_dims = {{576, {}}};
       },
       {"kernel_b"}},
      {[](KernelFilter& f) {
         f.head_dims = {{576, 512}};
       },
       {"kernel_b"}},
      {[](KernelFilter& f) {
         f.head_dims = {{576, 576}};
       },
       {}},
      {[](KernelFilter& f) { f.phases = {Phase::kContext}; }, {"kernel_a"}},
      {[](KernelFilter& f) {
         f.phases = {Phase::kDecode, Phase::kRagged};
       },
       {"kernel_b"}},
      {[](KernelFilter& f) { f.names = {"*_b"}; }, {"kernel_b"}},
      {[](KernelFilter& f) { f.digests = {*Sha256Digest::parse(std::string(64, 'a'))}; },
       {"kernel_a"}},
      {[](KernelFilter& f) {
         f.names = {"*_b"};
         f.dtypes_kv = {Dtype::kE2m1};
       },
       {}},
  };
  for (const Case& c : cases) {
    KernelFilter filter;
    c.set(filter);
    const Manifest subset = subset_of(manifest, filter);
    CHECK(names_of(subset) == c.names);
    CHECK(validate_manifest(subset));
    CHECK(subset.packs.empty() == c.names.empty());
  }
}

TEST_CASE("kernels beside attention pass filters of what attention kernels compute") {
  KernelRecord record;
  record.name = "lse";
  record.traits.arch = {90, SmArch::Kind::kSpecific};
  KernelFilter filter;
  filter.phases = {Phase::kDecode};
  filter.head_dims = {{128, {}}};
  CHECK(matches(filter, KernelFamily::kCubistAux, record));
  CHECK_FALSE(matches(filter, KernelFamily::kCubistDecode, record));
  filter.archs = {"sm_100"};
  CHECK_FALSE(matches(filter, KernelFamily::kCubistAux, record));
}

TEST_CASE("a filter knows whether it asks anything") {
  KernelFilter filter;
  CHECK(filter.asks_nothing());
  filter.names = {"*"};
  CHECK_FALSE(filter.asks_nothing());
}

TEST_CASE("patterns") {
  CHECK(matches_pattern("", ""));
  CHECK_FALSE(matches_pattern("", "a"));
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("a?c", "abc"));
  CHECK_FALSE(matches_pattern("a?c", "ac"));
  CHECK(matches_pattern("*b*b*", "abcabc"));
  CHECK(matches_pattern("*abc", "ababc"));
  CHECK_FALSE(matches_pattern("*abc", "ababcd"));
  CHECK(matches_pattern("a**", "a"));
  // Must not take exponential time.
  CHECK_FALSE(matches_pattern(std::string(50, '*') + "*a*a*a*a*a*a*a*a*b", std::string(500, 'a')));
}

TEST_CASE("head dimensions are one number or two") {
  CHECK(parse_head_dim("128")->qk == 128);
  CHECK_FALSE(parse_head_dim("128")->vo);
  CHECK(parse_head_dim("576/512")->vo == 512U);
  for (const char* text :
       {"", "0", "x", "128x", "/512", "576/", "576/0", "-1", "1/2/3", "99999999999"}) {
    CHECK(parse_head_dim(text).error().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("phases follow from kernel type and layout") {
  KernelTraits traits;
  CHECK(phase_of(traits) == Phase::kContext);
  traits.qkv_layout = QkvLayout::kPacked;
  CHECK(phase_of(traits) == Phase::kContext);
  traits.qkv_layout = QkvLayout::kSeparate;
  CHECK(phase_of(traits) == Phase::kRagged);
  traits.kernel_type = KernelType::kSwapsMmaAbGeneration;
  CHECK(phase_of(traits) == Phase::kDecode);
}

}  // namespace
}  // namespace cubist
