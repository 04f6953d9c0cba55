#include "workingset/check.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_set>

namespace cubist::workingset {
namespace {

using Random = std::mt19937_64;

std::int32_t draw(Random& random, std::int32_t first, std::int32_t last) {
  // Half of the draws by ratio: most of what happens, happens at the small end.
  if (random() % 2 == 0) return std::uniform_int_distribution<std::int32_t>(first, last)(random);
  const double low = std::log(static_cast<double>(first));
  const double high = std::log(static_cast<double>(last) + 1.0);
  const double value = std::exp(std::uniform_real_distribution<double>(low, high)(random));
  return std::clamp(static_cast<std::int32_t>(value), first, last);
}

std::int32_t draw(Random& random, const std::vector<Range>& ranges) {
  const Range& range = ranges[random() % ranges.size()];
  return draw(random, range.first, range.last);
}

void draw_answers(Random& random, std::array<std::int32_t, 17>& answers) {
  const std::uint64_t kind = random() % 4;
  for (std::int32_t& answer : answers) {
    switch (kind == 3 ? random() % 3 : kind) {
      case 0:
        answer = -1;
        break;
      case 1:
        answer = 0;
        break;
      default:
        answer = static_cast<std::int32_t>(random() % 160);
    }
  }
}

}  // namespace

CheckResult check_working_set(const selector::KernelTable& table, const Query& query,
                              const WorkingSet& set, std::uint64_t problems, std::uint64_t seed) {
  std::unordered_set<const KernelRecord*> members;
  for (const Member& member : set.members) members.insert(member.record);
  Random random(seed);
  CheckResult result;
  const selector::SelectOptions options = options_of(query);
  DeviceProfile device = query.device;
  Selection selection;
  for (; result.problems < problems; ++result.problems) {
    const ProblemClass& cls = query.classes[random() % query.classes.size()];
    AttentionProblem problem = cls.problem;
    problem.batch = draw(random, query.batch);
    problem.max_q_len = draw(random, query.max_q_len);
    problem.max_kv_len = draw(random, query.max_kv_len);
    draw_answers(random, device.max_active_clusters);
    const auto used = table_at(table, query, problem);
    if (!used || !selector::select_into(**used, problem, device, options, selection)) continue;
    ++result.selected;
    for (std::uint32_t i = 0; i < selection.num_plans; ++i) {
      ++result.plans;
      if (members.count(selection.plans[i].record) != 0) continue;
      result.outside = Witness{problem, device.max_active_clusters, cls.label};
      result.outside_record = selection.plans[i].record;
      return result;
    }
  }
  return result;
}

}  // namespace cubist::workingset
