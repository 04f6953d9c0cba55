#include "manifest_names.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "config/project.h"
#include "manifest/parse.h"
#include "runtime/manifest_path.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

bool is_file_name(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

/// The project that the current folder belongs to; without pins where there is none.
Result<config::Project> current_project() {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) return config::Project();
  CUBIST_ASSIGN_OR_RETURN(const std::string file, config::find_project_file(folder));
  if (file.empty()) return config::Project();
  return config::load_project(file);
}

}  // namespace

Result<NamedManifest> find_manifest(const std::string& name) {
  NamedManifest found;
  found.name = name;
  if (!is_file_name(name)) {
    CUBIST_ASSIGN_OR_RETURN(const config::Project project, current_project());
    if (const config::PinnedManifest* pin = project.find(name)) {
      found.pinned = pin->sha256;
      found.project = project.file;
      found.path = project.path_of(*pin);
      found.pinned_by_path = !pin->path.empty();
    }
  }
  if (found.path.empty()) {
    CUBIST_ASSIGN_OR_RETURN(found.path, runtime::find_manifest(name));
  }
  return found;
}

Status check_pin(const NamedManifest& manifest, std::string_view text) {
  if (!manifest.pinned) return {};
  const Sha256Digest digest =
      sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  if (digest == *manifest.pinned) return {};
  const std::string what = manifest.pinned_by_path
                               ? fmt::format("{} --as {}", manifest.path, manifest.name)
                               : manifest.name;
  return fail(StatusCode::kIntegrity,
              "'{}' has sha256 {}, but '{}' pins manifest '{}' to {}; get that one back, or accept "
              "this one with 'cubist manifest add {} --replace'",
              manifest.path, digest.hex(), manifest.project, manifest.name, manifest.pinned->hex(),
              what);
}

Result<runtime::TrustedManifest> open_trusted_manifest(const NamedManifest& named) {
  CUBIST_ASSIGN_OR_RETURN(trust::Trust * trust, trust_of_user());
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(named.path, kMaxManifestBytes));
  CUBIST_RETURN_IF_ERROR(check_pin(named, text));
  return runtime::parse_trusted_manifest(text, named.path, *trust);
}

Result<Manifest> open_manifest(const std::string& name) {
  CUBIST_ASSIGN_OR_RETURN(const NamedManifest named, find_manifest(name));
  CUBIST_ASSIGN_OR_RETURN(runtime::TrustedManifest opened, open_trusted_manifest(named));
  return std::move(opened.manifest);
}

Result<std::string> manifest_path(const std::string& name) {
  CUBIST_ASSIGN_OR_RETURN(NamedManifest found, find_manifest(name));
  if (found.pinned) {
    CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(found.path, kMaxManifestBytes));
    CUBIST_RETURN_IF_ERROR(check_pin(found, text));
  }
  return std::move(found.path);
}

Result<std::vector<std::string>> manifest_names() {
  CUBIST_ASSIGN_OR_RETURN(const config::Project project, current_project());
  std::vector<std::string> names = runtime::shipped_manifests();
  for (const config::PinnedManifest& pin : project.manifests) names.push_back(pin.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace cubist::tools
