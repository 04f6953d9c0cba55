#pragma once

#include <map>
#include <string>

#include "workingset/prove.h"
#include "workingset/working_set.h"

namespace cubist::workingset {

/// Cuts the boxes of a query until each is proved, and collects what selection answers there.
class Explorer {
 public:
  explicit Explorer(const Query& query) : query_(query) {}

  /// `table` is the one for every problem of the box.
  Status explore(const selector::KernelTable& table, const ProblemClass& cls, const Box& box);
  /// The whole box has no kernel, for a reason known already.
  void note_gap(const ProblemClass& cls, const Box& box, const std::string& message);
  /// Everything found so far, sorted.
  WorkingSet take();

 private:
  Status prove(BoxProver& prover, const Box& box);
  Status collect(const BoxDecision& decision, const Box& box);

  const Query& query_;
  const selector::KernelTable* table_ = nullptr;
  const ProblemClass* class_ = nullptr;

  struct Found {
    Member member;
    std::uint32_t place = 0;  ///< of the plan in its selection
  };
  std::map<const KernelRecord*, Found> found_;
  std::map<std::pair<std::string, std::string>, Gap> gaps_;  // by class and message
  std::uint64_t boxes_ = 0;
  std::uint64_t points_ = 0;
};

}  // namespace cubist::workingset
