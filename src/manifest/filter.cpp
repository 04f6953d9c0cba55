#include "manifest/filter.h"

#include <algorithm>
#include <charconv>

#include "manifest/text.h"

namespace cubist {
namespace {

template <class Value>
bool wants(const std::vector<Value>& list, const Value& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

bool wants_arch(const std::vector<std::string>& archs, SmArch arch) {
  if (archs.empty()) return true;
  return std::any_of(archs.begin(), archs.end(), [&](const std::string& text) {
    const std::optional<SmArch> wanted = parse_sm_arch(text);
    if (!wanted) return false;
    return wanted->kind == SmArch::Kind::kPortable ? runs_on(arch, wanted->sm) : arch == *wanted;
  });
}

bool wants_head_dim(const std::vector<KernelFilter::HeadDim>& list, const KernelTraits& traits) {
  if (list.empty()) return true;
  return std::any_of(list.begin(), list.end(), [&](const KernelFilter::HeadDim& wanted) {
    return wanted.qk == traits.head_dim_qk && (!wanted.vo || *wanted.vo == traits.head_dim_vo);
  });
}

bool wants_output(const std::vector<Dtype>& list, const KernelTraits& traits) {
  return list.empty() ||
         std::any_of(list.begin(), list.end(), [&](Dtype dtype) { return writes(traits, dtype); });
}

bool wants_attention(const KernelFilter& filter, const KernelTraits& traits) {
  return wants(filter.dtypes_q, traits.dtype_q) &&
         (wants(filter.dtypes_kv, traits.dtype_k) || wants(filter.dtypes_kv, traits.dtype_v)) &&
         wants_output(filter.dtypes_o, traits) && wants_head_dim(filter.head_dims, traits) &&
         wants(filter.phases, phase_of(traits));
}

std::optional<std::uint32_t> parse_dimension(std::string_view text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number == 0) return std::nullopt;
  return number;
}

}  // namespace

Result<KernelFilter::HeadDim> parse_head_dim(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::optional<std::uint32_t> qk = parse_dimension(text.substr(0, slash));
  KernelFilter::HeadDim head_dim;
  if (slash != std::string_view::npos) head_dim.vo = parse_dimension(text.substr(slash + 1));
  if (!qk || (slash != std::string_view::npos && !head_dim.vo)) {
    return fail(StatusCode::kInvalidArgument,
                "{} is no head dimension: give one such as 128, or two such as 576/512",
                shown(text));
  }
  head_dim.qk = *qk;
  return head_dim;
}

Phase phase_of(const KernelTraits& traits) {
  if (traits.kernel_type != KernelType::kContext) return Phase::kDecode;
  return traits.qkv_layout == QkvLayout::kSeparate ? Phase::kRagged : Phase::kContext;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // the last "*", which took the text up to `taken`
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool matches(const KernelFilter& filter, KernelFamily family, const KernelRecord& record) {
  if (!wants_arch(filter.archs, record.traits.arch)) return false;
  if (!wants(filter.digests, record.sha256)) return false;
  if (!filter.names.empty() &&
      std::none_of(filter.names.begin(), filter.names.end(), [&](const std::string& pattern) {
        return matches_pattern(pattern, record.name);
      })) {
    return false;
  }
  return family == KernelFamily::kCubistAux || wants_attention(filter, record.traits);
}

Manifest subset_of(const Manifest& manifest, const KernelFilter& filter) {
  Manifest subset;
  subset.name = manifest.name;
  subset.description = manifest.description;
  subset.folder = manifest.folder;
  for (const Pack& pack : manifest.packs) {
    Pack kept{pack.name,         pack.version,    pack.license, pack.family, pack.revision,
              pack.param_layout, pack.min_driver, pack.sources, {}};
    std::copy_if(pack.kernels.begin(), pack.kernels.end(), std::back_inserter(kept.kernels),
                 [&](const KernelRecord& record) { return matches(filter, pack.family, record); });
    if (!kept.kernels.empty()) subset.packs.push_back(std::move(kept));
  }
  return subset;
}

}  // namespace cubist
