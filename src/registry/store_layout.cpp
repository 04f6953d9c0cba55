#include "registry/store_layout.h"

#include <pwd.h>
#include <unistd.h>

#include <filesystem>

#include "base/environment.h"
#include "base/secrets.h"
#include "registry/environment_names.h"

namespace cubist {
namespace {

constexpr std::string_view kEntrySuffix = ".cubin";
constexpr std::string_view kBundleSuffix = ".zip";

/// The digest that a file's name consists of, in front of the suffix.
std::optional<Sha256Digest> digest_in_name(std::string_view file_name, std::string_view suffix) {
  if (!file_name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = file_name.substr(0, file_name.size() - suffix.size());
  const auto digest = Sha256Digest::parse(digits);
  // Upper-case digits would be a second name for the same file.
  if (!digest || digest->hex() != digits) return std::nullopt;
  return digest;
}

std::string home_folder() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (::getpwuid_r(::getuid(), &entry, buffer, sizeof(buffer), &found) != 0 || found == nullptr) {
    return {};
  }
  return entry.pw_dir == nullptr ? std::string() : std::string(entry.pw_dir);
}

std::string absolute_folder(const std::string& path) {
  std::error_code ignored;  // an unreadable current folder: keep the path as it was given
  const auto absolute = std::filesystem::absolute(path, ignored);
  std::string text = ignored ? path : absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

/// As a path it would be a folder below the current one, with the URL's password for a name.
Status refuse_url(std::string_view origin, std::string_view path) {
  if (!begins_as_url(path)) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is '{}', a URL, but a store is a folder; name one (files come from servers by "
              "CUBIST_SOURCES or --source)",
              origin, shown_value(path));
}

Result<std::string> root_folder(std::string_view root_override) {
  if (!root_override.empty()) {
    CUBIST_RETURN_IF_ERROR(refuse_url("the store", root_override));
    return absolute_folder(std::string(root_override));
  }
  if (const std::string set = environment("CUBIST_STORE"); !set.empty()) {
    CUBIST_RETURN_IF_ERROR(refuse_url(environment_origin("CUBIST_STORE"), set));
    return absolute_folder(set);
  }
  // The XDG specification asks to ignore a relative path here.
  if (const std::string xdg = environment("XDG_CACHE_HOME"); xdg.starts_with('/')) {
    return absolute_folder(xdg + "/cubist");
  }
  if (const std::string home = home_folder(); !home.empty()) {
    return absolute_folder(home + "/.cache/cubist");
  }
  return fail(StatusCode::kInvalidArgument,
              "no place for the store: CUBIST_STORE, XDG_CACHE_HOME and HOME are not set and the "
              "user has no home folder; set CUBIST_STORE or give --store");
}

}  // namespace

Result<StoreOptions> store_options_from_environment(std::string_view root_override) {
  warn_about_unknown_environment();
  StoreOptions options;
  CUBIST_ASSIGN_OR_RETURN(options.root, root_folder(root_override));
  for (const std::string& base : environment_list("CUBIST_STORE_BASE", ":")) {
    CUBIST_RETURN_IF_ERROR(refuse_url(environment_origin("CUBIST_STORE_BASE"), base));
    options.base_roots.push_back(absolute_folder(base));
  }
  return options;
}

std::string entry_relative_path(const Sha256Digest& digest) {
  const std::string hex = digest.hex();
  return fmt::format("sha256/{}/{}{}", hex.substr(0, 2), hex, kEntrySuffix);
}

std::string installed_manifest_folder(std::string_view root) {
  return fmt::format("{}/manifests", root);
}

std::string bundle_folder(std::string_view root) { return fmt::format("{}/bundles", root); }

std::string bundle_path(std::string_view root, const Sha256Digest& identity) {
  return fmt::format("{}/{}{}", bundle_folder(root), identity.hex(), kBundleSuffix);
}

std::string trust_state_folder(std::string_view root) { return fmt::format("{}/state", root); }

const std::vector<std::string>& store_folders() {
  static const std::vector<std::string> folders = {"sha256", "bundles", "tmp",
                                                   "index",  "state",   "manifests"};
  return folders;
}

std::string entry_path(std::string_view root, const Sha256Digest& digest) {
  return fmt::format("{}/{}", root, entry_relative_path(digest));
}

std::optional<Sha256Digest> parse_entry_name(std::string_view file_name) {
  return digest_in_name(file_name, kEntrySuffix);
}

bool is_bundle_name(std::string_view file_name) {
  return digest_in_name(file_name, kBundleSuffix).has_value();
}

}  // namespace cubist
