#include "config/project.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "document/document.h"
#include "document/json_text.h"
#include "document/schema_head.h"

namespace cubist::config {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxProjectBytes = 1 << 20;
constexpr const char* kFileName = "cubist.json";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '$' || c == '+';
}

bool is_link(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

PinnedManifest read_pin(const std::string& name, const DocumentNode& node) {
  PinnedManifest pin;
  pin.name = name;
  if (!is_manifest_name(name)) node.complain(fmt::format("{} is no name", in_quotes(name)));
  if (!node.is_object()) node.complain("expected an object with sha256 and perhaps path");
  node.allow_only({"path", "sha256"});
  const DocumentNode path = node.member("path");
  if (path.read(pin.path) && (pin.path.empty() || pin.path.find('\0') != std::string::npos)) {
    path.complain("is no path");
  }
  std::string hex;
  if (node.required("sha256").read(hex)) {
    if (const auto digest = Sha256Digest::parse(hex)) {
      pin.sha256 = *digest;
    } else {
      node.member("sha256").complain(
          fmt::format("{} is no sha256 of 64 hexadecimal digits", in_quotes(hex)));
    }
  }
  return pin;
}

}  // namespace

const PinnedManifest* Project::find(std::string_view name) const {
  const auto found = std::find_if(manifests.begin(), manifests.end(),
                                  [&](const PinnedManifest& pin) { return pin.name == name; });
  return found == manifests.end() ? nullptr : &*found;
}

void Project::put(PinnedManifest manifest) {
  const auto place = std::lower_bound(manifests.begin(), manifests.end(), manifest,
                                      [](const auto& a, const auto& b) { return a.name < b.name; });
  if (place != manifests.end() && place->name == manifest.name) {
    *place = std::move(manifest);
  } else {
    manifests.insert(place, std::move(manifest));
  }
}

std::string Project::path_of(const PinnedManifest& manifest) const {
  if (manifest.path.empty()) return {};
  return (fs::path(file).parent_path() / manifest.path).lexically_normal().string();
}

bool is_manifest_name(std::string_view name) {
  return !name.empty() && name.size() <= 512 &&
         std::all_of(name.begin(), name.end(), is_name_character) && name[0] != '.' &&
         name[0] != '-' && name[0] != '+' && !name.ends_with(".json");
}

Result<Project> parse_project(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  read_schema(root, "cubist.project");
  root.allow_only({"schema", "schema_version", "manifests"});
  Project project;
  project.file = file_name;
  const DocumentNode manifests = root.required("manifests");
  if (manifests.present() && !manifests.is_object()) manifests.complain("expected an object");
  for (const std::string& name : manifests.keys()) {
    project.put(read_pin(name, manifests.member(name)));
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return project;
}

std::string write_project(const Project& project) {
  std::string out = "{\n  \"schema\": \"cubist.project\",\n  \"schema_version\": 1,\n";
  out += "  \"manifests\": {";
  const char* separator = "\n";
  for (const PinnedManifest& pin : project.manifests) {
    out += fmt::format("{}    {}: {{", separator, json_string(pin.name));
    if (!pin.path.empty()) out += fmt::format("\"path\": {}, ", json_string(pin.path));
    out += fmt::format("\"sha256\": \"{}\"}}", pin.sha256.hex());
    separator = ",\n";
  }
  return out + (project.manifests.empty() ? "}\n}\n" : "\n  }\n}\n");
}

Result<std::string> find_project_file(const std::string& folder) {
  if (const char* named = std::getenv("CUBIST_PROJECT"); named != nullptr) return named;
  for (fs::path at = folder;; at = at.parent_path()) {
    const std::string file = (at / kFileName).string();
    struct stat found {};
    const bool there = ::stat(file.c_str(), &found) == 0;
    if (!there && is_link(file)) {
      return fail(StatusCode::kInvalidArgument,
                  "'{}' is a link that leads nowhere, so what it pins is not known; mend or remove "
                  "it, or set CUBIST_PROJECT to nothing to pass it by",
                  file);
    }
    if (there && S_ISREG(found.st_mode)) {
      if (at != folder && found.st_uid != ::geteuid() && found.st_uid != 0) {
        return fail(
            StatusCode::kInvalidArgument,
            "'{}' belongs to user {}, who would choose the manifests; set CUBIST_PROJECT to "
            "this file to accept that, or to nothing to pass it by",
            file, found.st_uid);
      }
      return file;
    }
    if (at == at.parent_path()) return std::string();
  }
}

Result<Project> load_project(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxProjectBytes));
  return parse_project(text, path);
}

}  // namespace cubist::config
