#pragma once

#include <string>

#include "document/document.h"
#include "selector/decode_model.h"

namespace cubist::overrides {

// "decode_model" of a rule file: the numbers of selector::DecodeModel under their own names, and
//
//   "gpu":            what it was fitted to, for people
//   "static_kernels": [ { "bits", "head_dim", "tile_q", "alone", "more", "per_sm" } ]   1 to 64

/// Reads it; complains in the document. `file_name`: for the model's `source`.
selector::DecodeModel read_decode_model(const DocumentNode& node, const std::string& file_name);

/// A rule file that holds nothing but the model.
/// made_by  for people: "cubist tune, 84 problems of the quick grid"
std::string write_decode_model(const selector::DecodeModel& model, const std::string& gpu,
                               const std::string& made_by);

}  // namespace cubist::overrides
