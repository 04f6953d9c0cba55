#include "capi/handles.h"

namespace cubist::capi {

SelectionObject::SelectionObject(std::unique_ptr<runtime::Selected> made)
    : selected(std::move(made)) {
  const Selection& selection = selected->selection();
  for (std::uint32_t i = 0; i < selection.num_plans; ++i) {
    const KernelRecord& record = *selection.plans[i].record;
    plan_strings[i] = {record.sha256.hex(), to_string(record.traits.arch)};
  }
}

RuntimeTable& runtimes() {
  static auto* table = new RuntimeTable("runtime");  // never destroyed: used while the process ends
  return *table;
}

SelectionTable& selections() {
  static auto* table = new SelectionTable("selection");
  return *table;
}

}  // namespace cubist::capi
