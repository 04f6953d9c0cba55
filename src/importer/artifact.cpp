#include "importer/artifact.h"

#include <algorithm>
#include <vector>

#include "manifest/text.h"

namespace cubist {
namespace {

// .../<id>/fmha/trtllm-gen/{NAME.cubin, checksums.txt, include/flashInferMetaInfo.h}
// GEMM's headers are called flashinferMetaInfo.h: the capital tells them apart.
constexpr std::string_view kHeader = "include/flashInferMetaInfo.h";

bool is_id(std::string_view part) {
  return part.size() == 40 && std::all_of(part.begin(), part.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string id_in(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (is_id(path.substr(0, slash))) return std::string(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return {};
}

Artifact artifact_at(const FileTree& tree, const std::string& header) {
  Artifact artifact;
  artifact.header = header;
  artifact.prefix = header.substr(0, header.size() - kHeader.size());
  artifact.id = id_in(artifact.prefix);
  if (artifact.id.empty()) artifact.id = id_in(tree.name());
  const std::string checksums = artifact.prefix + "checksums.txt";
  if (tree.find(checksums) != nullptr) artifact.checksums = checksums;
  return artifact;
}

std::string list_of(const std::vector<Artifact>& artifacts) {
  std::string list;
  for (const Artifact& artifact : artifacts) list += "\n  " + artifact.header;
  return list;
}

/// "Version: 0.6.13" -> "0.6.13"; the headers end at the first empty line.
std::string header_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    if (!line.starts_with(key) || line.substr(key.size()).substr(0, 2) != ": ") continue;
    return std::string(line.substr(key.size() + 2));
  }
  return {};
}

}  // namespace

Result<Artifact> find_artifact(const FileTree& tree, std::string_view wanted) {
  std::vector<Artifact> found;
  for (const TreeFile& file : tree.files()) {
    const std::string& path = file.path;
    if (!path.ends_with(kHeader)) continue;
    if (path.size() > kHeader.size() && path[path.size() - kHeader.size() - 1] != '/') continue;
    found.push_back(artifact_at(tree, path));
  }
  if (found.empty()) {
    return fail(
        StatusCode::kNotFound,
        "'{}' holds no '{}': expected a flashinfer-cubin wheel, the folder it was unpacked to, "
        "or an artifact's .../fmha/trtllm-gen folder",
        tree.name(), kHeader);
  }
  std::vector<Artifact> chosen;
  for (const Artifact& artifact : found) {
    if (artifact.header.find(wanted) != std::string::npos ||
        artifact.id.find(wanted) != std::string::npos) {
      chosen.push_back(artifact);
    }
  }
  if (chosen.size() == 1) return chosen[0];
  if (chosen.empty()) {
    return fail(StatusCode::kNotFound, "no artifact of '{}' matches {}; there are:{}", tree.name(),
                shown(wanted), list_of(found));
  }
  return fail(StatusCode::kInvalidArgument,
              "'{}' holds several FMHA artifacts; choose one with a part of its path:{}",
              tree.name(), list_of(chosen));
}

WheelMetadata read_wheel_metadata(const FileTree& tree) {
  constexpr std::uint64_t kMaxMetadataBytes = 1 << 20;
  for (const TreeFile& file : tree.files()) {
    if (!file.path.ends_with(".dist-info/METADATA")) continue;
    const Result<std::vector<std::uint8_t>> bytes = tree.read(file.path, kMaxMetadataBytes);
    if (!bytes) continue;
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    const std::string name = header_field(text, "Name");
    if (name != "flashinfer-cubin" && name != "flashinfer_cubin") continue;
    return {name, header_field(text, "Version"), header_field(text, "License")};
  }
  return {};
}

}  // namespace cubist
