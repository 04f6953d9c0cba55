#include "tuning/judge.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "selector/decode_costs.h"

namespace cubist::tuning {
namespace {

/// Of one problem: the way that the model would take and the fastest.
struct Ways {
  const Measured* chosen = nullptr;
  double chosen_cost = 0;
  const Measured* fastest = nullptr;
};

}  // namespace

Judgement judge(const selector::DecodeModel& model, std::span<const Measured> rows) {
  std::map<std::size_t, Ways> problems;
  for (const Measured& row : rows) {
    const double modelled =
        selector::modelled_us(model, row.request, row.record->traits, row.columns, row.num_ctas_kv);
    const double cost = row.is_static() ? modelled * selector::kStaticDoubt : modelled;
    Ways& ways = problems[row.problem];
    if (ways.chosen == nullptr || cost < ways.chosen_cost) {
      ways.chosen = &row;
      ways.chosen_cost = cost;
    }
    if (ways.fastest == nullptr || row.us < ways.fastest->us) ways.fastest = &row;
  }
  Judgement result;
  result.problems = problems.size();
  if (problems.empty()) return result;
  std::vector<double> ratios;
  ratios.reserve(problems.size());
  for (const auto& [number, ways] : problems) ratios.push_back(ways.chosen->us / ways.fastest->us);
  std::sort(ratios.begin(), ratios.end());
  result.mean =
      std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
  result.median = ratios[ratios.size() / 2];
  result.nine_in_ten = ratios[ratios.size() * 9 / 10];
  result.worst = ratios.back();
  const auto close =
      std::count_if(ratios.begin(), ratios.end(), [](double r) { return r <= 1.05; });
  result.within_5_percent = static_cast<double>(close) / static_cast<double>(ratios.size());
  return result;
}

}  // namespace cubist::tuning
