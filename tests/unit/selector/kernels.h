#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "model/kernel_record.h"
#include "selector/kernel_table.h"

namespace cubist::test {

/// A pack's records with the view that goes with them.
struct TestPack {
  std::vector<KernelRecord> kernels;
  HeuristicRevision revision = HeuristicRevision::kTrtllmGenFmha_0_6_13;
  ParamLayout param_layout = ParamLayout::kTrtllmGenFmha1280;
  KernelFamily family = KernelFamily::kTrtllmGenFmha;

  selector::PackView view() const { return {"test", family, revision, param_layout, kernels}; }
  selector::KernelTable table() const;
};

/// The traits of a small published release, made up: every combination of tiles, masks, modes and
/// pages for a few types and head sizes, decode, context and ragged, MLA, sparse and 2-CTA rows
/// among them. What no release has is in it too (a few rows per kind that can serve nothing).
TestPack made_up_release(HeuristicRevision revision);

/// A random part of a pack: each kernel stays with probability `keep`.
TestPack thinned(const TestPack& pack, double keep, std::mt19937& random);

/// A problem of the kinds that the made-up release knows, edges included; valid in itself.
AttentionProblem random_problem(std::mt19937& random);

DeviceProfile random_device(std::mt19937& random);

/// sm 100 with 148 SMs, cluster answers unknown.
DeviceProfile b200();

/// One of `values`.
template <class T>
T pick(std::mt19937& random, std::initializer_list<T> values) {
  return *(values.begin() + random() % values.size());
}

}  // namespace cubist::test
