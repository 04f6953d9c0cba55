#pragma once

#include "oci/session.h"
#include "registry/source.h"

namespace cubist::oci {

/// Opens sources of kind kOci: a bundle in a registry, of which single kernels are read, each by
/// the range of its entry in a shard; where the registry does not answer ranges, whole shards.
///
/// options  profile and parallel are those of the fetch; the rest counts
SourceOpener source_opener(const ConnectOptions& options);

}  // namespace cubist::oci
