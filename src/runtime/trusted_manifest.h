#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "manifest/manifest.h"
#include "registry/store.h"
#include "selector/kernel_table.h"
#include "trust/trust.h"

namespace cubist::runtime {

/// A manifest and who vouches for it.
struct TrustedManifest {
  Manifest manifest;
  std::optional<trust::SignedBy> signed_by;
  bool shipped = false;  ///< a file of this program's own package
};

/// The manifest in `text`, which was read from the file `path`: its signature is looked at before
/// anything in it, its serial and date after.
///
/// errors  those of Trust::check_manifest, parse_manifest and Trust::check_facts
Result<TrustedManifest> parse_trusted_manifest(const std::string& text, const std::string& path,
                                               trust::Trust& trust);
/// The same from the file, by its index in `store` if it is large (registry/manifest_index.h).
/// Where signatures are checked, so are those of the text that lies there, each time: an index then
/// spares the parser alone. errors  also kNotFound, kIo, kIntegrity
Result<TrustedManifest> load_trusted_manifest(const std::string& path, trust::Trust& trust,
                                              const Store& store);

/// Revoked kernels as selection leaves them out, with what explain says of them.
std::vector<selector::BarredKernel> barred_kernels(const trust::RevokedKernels& revoked);

}  // namespace cubist::runtime
