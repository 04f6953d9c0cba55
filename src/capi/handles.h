#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "capi/handle_table.h"
#include "capi/launch_memo.h"
#include "cubist/cubist.h"
#include "runtime/runtime.h"
#include "runtime/selected.h"

namespace cubist::capi {

struct RuntimeObject {
  std::shared_ptr<runtime::Runtime> runtime;
  LaunchMemo memo;  ///< holds no part of the runtime, and goes before it
};

/// A selection with the strings its C views hand out.
struct SelectionObject {
  struct PlanStrings {
    std::string sha256;
    std::string arch;
  };

  explicit SelectionObject(std::unique_ptr<runtime::Selected> made);

  std::unique_ptr<runtime::Selected> selected;
  std::array<PlanStrings, Selection::kMaxPlans> plan_strings;
  std::mutex explain_mutex;
  std::string explanation;  ///< empty until somebody asks
};

using RuntimeTable = HandleTable<RuntimeObject, cubist_runtime, 1>;
using SelectionTable = HandleTable<SelectionObject, cubist_selection, 2>;

/// One of each a process; they live as long as it does.
RuntimeTable& runtimes();
SelectionTable& selections();

}  // namespace cubist::capi
