#include "workingset/compare.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "workingset/prove.h"

namespace cubist::workingset {
namespace {

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_same_v<T, SmArch>) {
    return to_string(value);
  } else {
    return fmt::format("{}", value);
  }
}

/// What a person upgrading wants to know of. Masks and layouts follow from the problem, threads and
/// shared memory from how a kernel was built.
std::vector<std::string> find_differences(const KernelTraits& a, const KernelTraits& b) {
  std::vector<std::string> found;
  const auto compare = [&](std::string_view name, auto member) {
    if (a.*member == b.*member) return;
    found.push_back(fmt::format("{} {} -> {}", name, shown(a.*member), shown(b.*member)));
  };
  compare("tile_q", &KernelTraits::tile_q);
  compare("tile_kv", &KernelTraits::tile_kv);
  compare("step_q", &KernelTraits::step_q);
  compare("step_kv", &KernelTraits::step_kv);
  compare("kernel_type", &KernelTraits::kernel_type);
  compare("scheduler", &KernelTraits::scheduler);
  compare("multi_ctas_kv_mode", &KernelTraits::multi_ctas_kv_mode);
  compare("head_dim_per_cta_v", &KernelTraits::head_dim_per_cta_v);
  compare("two_cta_mma", &KernelTraits::two_cta_mma);
  compare("skip_softmax", &KernelTraits::skip_softmax);
  compare("dynamic_page", &KernelTraits::dynamic_page);
  compare("dynamic_dtype_o", &KernelTraits::dynamic_dtype_o);
  compare("arch", &KernelTraits::arch);
  return found;
}

class Comparer {
 public:
  Comparer(const Side& before, const Side& after) : before_(before), after_(after) {}

  void compare_class(const ProblemClass& cls) {
    class_ = &cls;
    for (const Box& box : boxes_of(cls, {&before_.query, &after_.query})) compare_box(box);
  }

  Comparison take() {
    Comparison result;
    for (auto& [key, change] : changes_) result.changes.push_back(std::move(change));
    std::stable_sort(result.changes.begin(), result.changes.end(),
                     [](const Change& a, const Change& b) {
                       if (a.label != b.label) return a.label < b.label;
                       return a.num_problems > b.num_problems;
                     });
    result.num_problems = before_.query.num_problems();
    result.num_refused = refused_;
    result.boxes = boxes_;
    return result;
  }

 private:
  /// A side's prover for the box; null where its override rules leave no kernel.
  static std::unique_ptr<BoxProver> prover_for(const Side& side, const ProblemClass& cls,
                                               const Box& box) {
    const auto table = table_at(*side.table, side.query, problem_at(cls.problem, box.low()));
    if (!table) return nullptr;
    return std::make_unique<BoxProver>(**table, side.query, cls.problem);
  }

  void compare_box(const Box& box) {
    const auto before = prover_for(before_, *class_, box);
    const auto after = prover_for(after_, *class_, box);
    walk(before.get(), after.get(), box);
  }

  void walk(BoxProver* before, BoxProver* after, const Box& box) {
    using Kind = BoxDecision::Kind;
    const BoxDecision a = before == nullptr ? BoxDecision{} : before->decide(box);
    if (a.kind == Kind::kUndecided) return walk_halves(before, after, box, a.cut_at);
    const BoxDecision b = after == nullptr ? BoxDecision{} : after->decide(box);
    if (b.kind == Kind::kUndecided) return walk_halves(before, after, box, b.cut_at);
    ++boxes_;
    note(a.kind == Kind::kAnswers ? a.first() : nullptr,
         b.kind == Kind::kAnswers ? b.first() : nullptr, box);
  }

  void walk_halves(BoxProver* before, BoxProver* after, const Box& box, Dimension cut_at) {
    for (const Box& half : halves(box, cut_at)) walk(before, after, half);
  }

  void note(const KernelRecord* before, const KernelRecord* after, const Box& box) {
    if (before == nullptr && after == nullptr) {
      refused_ += size_of(box);
      return;
    }
    Change& change = changes_[{class_->label, before, after}];
    if (change.num_problems == 0) {
      change.label = class_->label;
      change.before = before;
      change.after = after;
      change.example = problem_at(class_->problem, box.low());
      classify(change);
    }
    change.num_problems += size_of(box);
  }

  static void classify(Change& change) {
    if (change.before == nullptr || change.after == nullptr) {
      change.kind = change.before == nullptr ? ChangeKind::kAppears : ChangeKind::kVanishes;
    } else if (change.before->sha256 == change.after->sha256) {
      change.kind = ChangeKind::kSame;
    } else {
      change.differences = find_differences(change.before->traits, change.after->traits);
      change.kind = change.differences.empty() ? ChangeKind::kRebuilt : ChangeKind::kChanged;
    }
  }

  const Side& before_;
  const Side& after_;
  const ProblemClass* class_ = nullptr;
  std::map<std::tuple<std::string, const KernelRecord*, const KernelRecord*>, Change> changes_;
  double refused_ = 0;
  std::uint64_t boxes_ = 0;
};

}  // namespace

std::string_view to_string(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kSame:
      return "same";
    case ChangeKind::kRebuilt:
      return "rebuilt";
    case ChangeKind::kChanged:
      return "changed";
    case ChangeKind::kAppears:
      return "appears";
    case ChangeKind::kVanishes:
      return "vanishes";
  }
  return "unknown";
}

double Comparison::count(ChangeKind kind) const {
  double problems = 0;
  for (const Change& change : changes) {
    if (change.kind == kind) problems += change.num_problems;
  }
  return problems;
}

Result<Comparison> compare(const Side& before, const Side& after) {
  CUBIST_RETURN_IF_ERROR(validate_query(before.query));
  Query other = before.query;
  other.device = after.query.device;
  CUBIST_RETURN_IF_ERROR(validate_query(other));
  Comparer comparer(before, after);
  for (const ProblemClass& cls : before.query.classes) comparer.compare_class(cls);
  return comparer.take();
}

}  // namespace cubist::workingset
