#include "manifest/validate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/date.h"
#include "manifest/rules.h"
#include "manifest/text.h"
#include "manifest/words.h"

namespace cubist {
namespace {

/// A kernel and its place, for messages and comparisons across packs.
struct KernelRef {
  std::uint64_t
      key;  ///< of what is compared: makes sorting cheap; equal keys are looked at closely
  const KernelRecord* record;
  std::uint32_t pack;
  std::uint32_t kernel;
};

constexpr std::size_t kMaxPacks = 1024;

std::string kernel_pointer(std::size_t pack, std::size_t kernel) {
  return fmt::format("/packs/{}/kernels/{}", pack, kernel);
}

std::string kernel_pointer(const KernelRef& ref) { return kernel_pointer(ref.pack, ref.kernel); }

struct RevisionRule {
  KernelFamily family;
  HeuristicRevision revision;
  ParamLayout param_layout;
};

// What was released together: rules that choose, and the block of parameters they fill.
constexpr std::array<RevisionRule, 3> kRevisionRules = {{
    {KernelFamily::kTrtllmGenFmha, HeuristicRevision::kTrtllmGenFmha_0_6_8,
     ParamLayout::kTrtllmGenFmha1152},
    {KernelFamily::kTrtllmGenFmha, HeuristicRevision::kTrtllmGenFmha_0_6_13,
     ParamLayout::kTrtllmGenFmha1280},
    {KernelFamily::kCubistDecode, HeuristicRevision::kCubistDecode_1, ParamLayout::kCubistDecode1},
}};

bool layout_of_family(KernelFamily family, ParamLayout layout) {
  switch (layout) {
    case ParamLayout::kTrtllmGenFmha1088:
    case ParamLayout::kTrtllmGenFmha1152:
    case ParamLayout::kTrtllmGenFmha1280:
      return family == KernelFamily::kTrtllmGenFmha;
    case ParamLayout::kCubistDecode1:
      return family == KernelFamily::kCubistDecode;
    case ParamLayout::kCubistReduce1:
    case ParamLayout::kCubistLse1:
    case ParamLayout::kCubistFuseScales1:
      return family == KernelFamily::kCubistAux;
    case ParamLayout::kNone:
      return true;
  }
  return false;
}

Status check_revision(const Pack& pack, const std::string& pointer) {
  if (!layout_of_family(pack.family, pack.param_layout)) {
    return invalid(pointer + "/param_layout", "'{}' is no parameter layout of family '{}'",
                   to_string(pack.param_layout), to_string(pack.family));
  }
  if (pack.revision == HeuristicRevision::kNone) return {};
  for (const RevisionRule& rule : kRevisionRules) {
    if (rule.revision != pack.revision) continue;
    if (rule.family != pack.family) {
      return invalid(pointer + "/revision", "'{}' is a revision of family '{}', not of '{}'",
                     to_string(pack.revision), to_string(rule.family), to_string(pack.family));
    }
    if (rule.param_layout != pack.param_layout) {
      return invalid(pointer + "/param_layout", "revision '{}' fills '{}', not '{}'",
                     to_string(pack.revision), to_string(rule.param_layout),
                     to_string(pack.param_layout));
    }
    return {};
  }
  return invalid(pointer + "/revision", "unknown revision; known are {}",
                 word_list<HeuristicRevision>());
}

Status check_kernel(const KernelRecord& record, const Pack& owner, std::size_t pack,
                    std::size_t kernel) {
  // The pointer is put together only when something is wrong: opening a manifest is mostly this
  // loop.
  const auto at = [&](std::string_view key) {
    return kernel_pointer(pack, kernel) + "/" + std::string(key);
  };
  if (Status ok = check_name(record.name, {}); !ok) return check_name(record.name, at("name"));
  // Without one the file has the kernel's name, and a name is a path as it should be.
  if (!record.path.empty()) {
    if (record.path.size() > kMaxPathLength) {
      return invalid(at("path"), "{} bytes; at most {} are allowed", record.path.size(),
                     kMaxPathLength);
    }
    if (const std::string_view problem = path_problem(record.path); !problem.empty()) {
      return invalid(at("path"), "{} {}", shown(record.path), problem);
    }
  }
  if (record.size_bytes == 0 || record.size_bytes > kMaxKernelBytes) {
    return invalid(at("size"), "{} bytes; a kernel has 1 to {}", record.size_bytes,
                   kMaxKernelBytes);
  }
  if (record.sha256 == Sha256Digest{}) {
    return invalid(at("sha256"), "all zero: the digest was never filled in");
  }
  if (record.traits.arch.sm == 0) return invalid(at("arch"), "the architecture is missing");
  if (const Status ok = check_traits(record.traits, owner); !ok) {
    return tl::unexpected<Error>(Error(ok.error().code(), at("traits/") + ok.error().message()));
  }
  return {};
}

Status check_pack(const Pack& pack, std::size_t index) {
  const std::string pointer = fmt::format("/packs/{}", index);
  CUBIST_RETURN_IF_ERROR(check_name(pack.name, pointer + "/name"));
  CUBIST_RETURN_IF_ERROR(check_text(pack.version, kMaxNameLength, pointer + "/version"));
  CUBIST_RETURN_IF_ERROR(check_text(pack.license, kMaxNameLength, pointer + "/license"));
  CUBIST_RETURN_IF_ERROR(check_revision(pack, pointer));
  for (std::size_t i = 0; i < pack.sources.size(); ++i) {
    CUBIST_RETURN_IF_ERROR(check_source(pack.sources[i], fmt::format("{}/sources/{}", pointer, i)));
  }
  for (std::size_t i = 0; i < pack.kernels.size(); ++i) {
    CUBIST_RETURN_IF_ERROR(check_kernel(pack.kernels[i], pack, index, i));
  }
  return {};
}

/// References to all kernels with equal ones side by side, those in the manifest's order.
/// key_of gives a cheap key, compare(a, b) < 0, 0 or > 0 tells kernels of equal keys apart.
template <class KeyOf, class Compare>
std::vector<KernelRef> sorted_refs(const Manifest& manifest, KeyOf key_of, Compare compare) {
  std::vector<KernelRef> refs;
  for (std::uint32_t p = 0; p < manifest.packs.size(); ++p) {
    const Pack& pack = manifest.packs[p];
    refs.reserve(refs.size() + pack.kernels.size());
    for (std::uint32_t k = 0; k < pack.kernels.size(); ++k) {
      refs.push_back({key_of(pack.kernels[k]), &pack.kernels[k], p, k});
    }
  }
  std::sort(refs.begin(), refs.end(), [&](const KernelRef& a, const KernelRef& b) {
    if (a.key != b.key) return a.key < b.key;
    if (const int order = compare(a, b); order != 0) return order < 0;
    return std::pair(a.pack, a.kernel) < std::pair(b.pack, b.kernel);
  });
  return refs;
}

/// `same`: all references to one digest.
Status check_one_digest(std::span<const KernelRef> same) {
  if (same.size() > kMaxRecordsPerDigest) {
    return invalid(kernel_pointer(same.back()), "one sha256 in {} records; at most {} are allowed",
                   same.size(), kMaxRecordsPerDigest);
  }
  for (std::size_t later = 1; later < same.size(); ++later) {
    const KernelRecord& b = *same[later].record;
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const KernelRecord& a = *same[earlier].record;
      if (a.size_bytes != b.size_bytes) {
        return invalid(kernel_pointer(same[later]) + "/size",
                       "{} bytes, but {} says {} for the same sha256", b.size_bytes,
                       kernel_pointer(same[earlier]), a.size_bytes);
      }
      if (a.traits == b.traits) {
        return invalid(kernel_pointer(same[later]), "the same sha256 and traits as {}",
                       kernel_pointer(same[earlier]));
      }
    }
  }
  return {};
}

Status check_digests(const Manifest& manifest) {
  const std::vector<KernelRef> refs = sorted_refs(
      manifest, [](const KernelRecord& record) { return std::hash<Sha256Digest>()(record.sha256); },
      [](const KernelRef& a, const KernelRef& b) {
        return std::memcmp(a.record->sha256.bytes.data(), b.record->sha256.bytes.data(), 32);
      });
  for (std::size_t first = 0; first < refs.size();) {
    std::size_t end = first + 1;
    while (end < refs.size() && refs[end].record->sha256 == refs[first].record->sha256) ++end;
    CUBIST_RETURN_IF_ERROR(check_one_digest(std::span(refs).subspan(first, end - first)));
    first = end;
  }
  return {};
}

/// The file's name without what nearly all end in: no text is put together for a record that has
/// only a name.
std::string_view stem_of(const KernelRecord& record) {
  constexpr std::string_view kEnding = ".cubin";
  std::string_view stem = record.path.empty() ? record.name : record.path;
  if (!record.path.empty() && stem.ends_with(kEnding)) stem.remove_suffix(kEnding.size());
  return stem;
}

Status check_paths(const Manifest& manifest) {
  const std::vector<KernelRef> refs = sorted_refs(
      manifest,
      [](const KernelRecord& record) { return std::hash<std::string_view>()(stem_of(record)); },
      [](const KernelRef& a, const KernelRef& b) {
        if (a.pack != b.pack) return a.pack < b.pack ? -1 : 1;
        return a.record->file().compare(b.record->file());
      });
  for (std::size_t i = 1; i < refs.size(); ++i) {
    const KernelRef& a = refs[i - 1];
    const KernelRef& b = refs[i];
    if (a.key != b.key || a.pack != b.pack || a.record->sha256 == b.record->sha256) continue;
    if (a.record->file() != b.record->file()) continue;
    return invalid(kernel_pointer(b) + "/path", "{} is claimed by {} too, with another sha256",
                   shown(b.record->file()), kernel_pointer(a));
  }
  return {};
}

Status check_pack_names(const Manifest& manifest) {
  for (std::size_t later = 1; later < manifest.packs.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (manifest.packs[earlier].name != manifest.packs[later].name) continue;
      return invalid(fmt::format("/packs/{}/name", later), "{} is the name of /packs/{} too",
                     shown(manifest.packs[later].name), earlier);
    }
  }
  return {};
}

Status check_manifest(const Manifest& manifest) {
  CUBIST_RETURN_IF_ERROR(check_name(manifest.name, "/name"));
  CUBIST_RETURN_IF_ERROR(check_text(manifest.description, kMaxDescriptionLength, "/description"));
  if (!manifest.expires.empty() && !parse_date(manifest.expires)) {
    return invalid("/expires", "{} is no date like 2027-01-31", shown(manifest.expires));
  }
  if (manifest.packs.size() > kMaxPacks) {
    return invalid("/packs", "{} packs; at most {} are allowed", manifest.packs.size(), kMaxPacks);
  }
  for (std::size_t i = 0; i < manifest.packs.size(); ++i) {
    CUBIST_RETURN_IF_ERROR(check_pack(manifest.packs[i], i));
  }
  CUBIST_RETURN_IF_ERROR(check_pack_names(manifest));
  CUBIST_RETURN_IF_ERROR(check_digests(manifest));
  return check_paths(manifest);
}

}  // namespace

std::string_view path_problem(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.front() == '/') return "is an absolute path; it must be relative";
  if (find_control(path) != std::string_view::npos) return "holds a control character";
  if (path.find('\\') != std::string_view::npos) return "holds a backslash; parts end in '/'";
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty()) return "has an empty part";
    if (part == "." || part == "..") return "holds a '.' or '..' part; it must stay in its folder";
    if (slash == std::string_view::npos) return {};
    path.remove_prefix(slash + 1);
  }
}

Status validate_manifest(const Manifest& manifest, std::string_view file_name) {
  Status status = check_manifest(manifest);
  if (!status && !file_name.empty()) return forward_error(status, file_name);
  return status;
}

}  // namespace cubist
