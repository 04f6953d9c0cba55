#include "manifest_side.h"

#include <vector>

#include "document/json_text.h"
#include "manifest_names.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

struct SideText {
  std::string manifest;
  std::string device;
  std::optional<HeuristicRevision> revision;
};

Result<SideText> parse_side(const std::string& text) {
  SideText side;
  std::size_t end = text.find(',');
  side.manifest = text.substr(0, end);
  while (end != std::string::npos) {
    const std::size_t start = end + 1;
    end = text.find(',', start);
    const std::string item = text.substr(start, end == std::string::npos ? end : end - start);
    if (item.rfind("device=", 0) == 0) {
      side.device = item.substr(7);
    } else if (item.rfind("revision=", 0) == 0) {
      side.revision = parse_heuristic_revision(item.substr(9));
      if (side.revision && *side.revision != HeuristicRevision::kNone) continue;
      return fail(StatusCode::kInvalidArgument,
                  "{}: {} is no revision; known are trtllm-gen-fmha-0.6.8, "
                  "trtllm-gen-fmha-0.6.13, cubist-decode-1",
                  text, in_quotes(item.substr(9)));
    } else {
      return fail(StatusCode::kInvalidArgument, "{}: {} is neither device=NAME nor revision=NAME",
                  text, in_quotes(item));
    }
  }
  return side;
}

}  // namespace

Result<std::unique_ptr<ManifestSide>> open_side(const std::string& text) {
  CUBIST_ASSIGN_OR_RETURN(const SideText parsed, parse_side(text));
  auto side = std::make_unique<ManifestSide>();
  side->text = text;
  side->device = parsed.device;
  CUBIST_ASSIGN_OR_RETURN(side->manifest, open_manifest(parsed.manifest));
  std::vector<selector::PackView> views;
  for (const Pack& pack : side->manifest.packs) {
    const HeuristicRevision revision = parsed.revision.value_or(pack.revision);
    const bool is_decode = revision == HeuristicRevision::kCubistDecode_1;
    if (parsed.revision && is_decode != (pack.family == KernelFamily::kCubistDecode)) {
      return fail(StatusCode::kInvalidArgument,
                  "{}: revision {} is not for the kernels of pack '{}' (family {})", text,
                  to_string(revision), pack.name, to_string(pack.family));
    }
    views.push_back({pack.name, pack.family, revision, pack.param_layout, pack.kernels});
  }
  CUBIST_ASSIGN_OR_RETURN(const trust::RevokedKernels* revoked, revoked_kernels());
  CUBIST_ASSIGN_OR_RETURN(side->table,
                          selector::KernelTable::build(views, runtime::barred_kernels(*revoked)));
  return side;
}

}  // namespace cubist::tools
