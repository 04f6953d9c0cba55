#pragma once

#include "base/result.h"
#include "bundle/install.h"

namespace cubist::bundle {

/// The kernels of a bundle into the writable layer of a store: those that no layer has whole as
/// entries, each verified before it is written. Counts in `report`.
///
/// errors  the first that occurs; what was published until then stays: it is right
Status install_kernels(const Bundle& bundle, const Store& store, const InstallOptions& options,
                       InstallReport& report);

}  // namespace cubist::bundle
