#pragma once

#include <string>

#include "manifest/manifest.h"

namespace cubist {

/// The manifest as text: parse_manifest gives back an equal one. Deterministic, one kernel a line;
/// traits that equal their documented default are left out.
std::string write_manifest(const Manifest& manifest);

}  // namespace cubist
