#pragma once

#include <set>
#include <string>

#include "registry/store.h"

namespace cubist {

/// Makes what an install relies on as young as if it had brought it: the time stamp of an entry or
/// of a bundle's file in the writable layer, which is all that collect_garbage() knows of its use.
/// Paths in other layers are passed over: nothing is collected there. One that may not be written
/// is named in the log: the kernels are there all the same.
///
/// paths  of entries and bundles, as Store::locate() names them
void record_use(const Store& store, const std::set<std::string>& paths);

}  // namespace cubist
