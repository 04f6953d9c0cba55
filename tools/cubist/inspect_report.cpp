#include "inspect_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;
using Dim3 = std::array<std::uint32_t, 3>;

std::string dim_text(const Dim3& d) { return fmt::format("{} x {} x {}", d[0], d[1], d[2]); }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string params_text(const CubinEntry& entry) {
  std::string text = fmt::format("{} bytes", entry.param_bytes);
  if (entry.params.size() < 2) return text;
  text += fmt::format(" in {} parameters (bytes at offset:", entry.params.size());
  for (const CubinParam& param : entry.params) {
    text += fmt::format(" {}@{}", param.size, param.offset);
  }
  return text + ")";
}

std::string smem_text(const CubinEntry& entry) {
  const std::string dynamic =
      entry.dynamic_smem ? fmt::format("{} bytes", *entry.dynamic_smem) : "unknown, set at launch";
  return entry.static_smem == 0 ? dynamic
                                : fmt::format("{}; static {} bytes", dynamic, entry.static_smem);
}

std::string entry_text(const CubinEntry& entry) {
  std::string text;
  const auto line = [&](const char* label, const std::string& value) {
    text += fmt::format("    {:<12} {}\n", label, value);
  };
  text += fmt::format("  {} {}\n", entry.is_smem_size_entry ? "size entry" : "kernel", entry.name);
  line("code", fmt::format("{} bytes", entry.code_bytes));
  line("parameters", params_text(entry));
  if (entry.registers) line("registers", fmt::to_string(*entry.registers));
  if (entry.is_smem_size_entry) return text;
  line("threads", entry.max_threads
                      ? fmt::format("{} ({})", entry.threads(), dim_text(*entry.max_threads))
                      : "no limit compiled in");
  line("smem", smem_text(entry));
  line("cluster", entry.cluster ? dim_text(*entry.cluster) : "not compiled in");
  if (entry.two_cta_mma) line("two-CTA MMA", *entry.two_cta_mma ? "yes" : "no");
  return text;
}

Json entry_json(const CubinEntry& entry) {
  Json params = Json::array();
  for (const CubinParam& param : entry.params) {
    params.push_back({{"offset", param.offset}, {"size", param.size}});
  }
  return {{"name", entry.name},
          {"is_smem_size_entry", entry.is_smem_size_entry},
          {"code_bytes", entry.code_bytes},
          {"param_bytes", entry.param_bytes},
          {"params", std::move(params)},
          {"registers", or_null(entry.registers)},
          {"threads", entry.max_threads ? Json(entry.threads()) : Json(nullptr)},
          {"block", or_null(entry.max_threads)},
          {"cluster", or_null(entry.cluster)},
          {"two_cta_mma", or_null(entry.two_cta_mma)},
          {"smem", or_null(entry.dynamic_smem)},
          {"static_smem", entry.static_smem}};
}

}  // namespace

std::string inspect_text(const std::string& file, const Sha256Digest& sha256,
                         const CubinFile& cubin) {
  std::string text = fmt::format("{}\n  arch {}, {} bytes, sha256 {}", file, arch_text(cubin),
                                 cubin.size_bytes, sha256.hex());
  if (!cubin.tool_release.empty())
    text += fmt::format(", assembled by CUDA {}", cubin.tool_release);
  text += '\n';
  for (const CubinEntry& entry : cubin.entries) text += entry_text(entry);
  return text;
}

Json inspect_json(const std::string& file, const Sha256Digest& sha256, const CubinFile& cubin) {
  Json entries = Json::array();
  for (const CubinEntry& entry : cubin.entries) entries.push_back(entry_json(entry));
  return {{"file", file},
          {"sha256", sha256.hex()},
          {"size_bytes", cubin.size_bytes},
          {"arch", to_string(cubin.arch)},
          {"arch_is_exact", cubin.arch_is_exact},
          {"tool_release", cubin.tool_release.empty() ? Json(nullptr) : Json(cubin.tool_release)},
          {"entries", std::move(entries)}};
}

}  // namespace cubist::tools
