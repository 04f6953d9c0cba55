#include "config/configuration.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/environment.h"
#include "base/file.h"
#include "document/document.h"
#include "document/json_text.h"

namespace cubist::config {
namespace {

constexpr std::uint64_t kMaxConfigurationBytes = 1 << 20;

std::string expand_path(const DocumentNode& node, const std::string& text, std::string_view home) {
  if (text.starts_with("~/") && home.starts_with('/')) {
    return std::string(home) + text.substr(1);
  }
  if (!text.starts_with('/')) {
    node.complain(fmt::format("{} is no absolute path; write /PATH or ~/PATH", in_quotes(text)));
  }
  return text;
}

void read_paths(const DocumentNode& node, std::string_view home, std::vector<std::string>& out) {
  if (!node.read_strings(out)) return;
  const std::vector<DocumentNode> items = node.items();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = expand_path(items[i], out[i], home);
    if (out[i].find(':') != std::string::npos) {
      items[i].complain(fmt::format("{} holds a ':', which separates paths", in_quotes(out[i])));
    }
  }
}

void read_words(const DocumentNode& node, std::string_view home, std::vector<std::string>& out) {
  if (!node.read_strings(out)) return;
  const std::vector<DocumentNode> items = node.items();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].starts_with("~/")) out[i] = expand_path(items[i], out[i], home);
    if (out[i].empty()) items[i].complain("an empty text means nothing here");
    if (out[i].find_first_of(kWhiteSpace) == std::string::npos) continue;
    items[i].complain(
        fmt::format("{} holds white space, which separates one from the next", in_quotes(out[i])));
  }
}

/// Public keys, or their files, which must not depend on where a command runs.
void read_keys(const DocumentNode& node, std::string_view home, std::vector<std::string>& out) {
  read_words(node, home, out);
  const std::vector<DocumentNode> items = node.items();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].ends_with(".pub")) out[i] = expand_path(items[i], out[i], home);
  }
}

void read_policy(const DocumentNode& node, std::string& out) {
  if (!node.read(out) || out == "allow" || out == "warn" || out == "refuse") return;
  node.complain(fmt::format("is {}; it must be allow, warn or refuse", in_quotes(out)));
}

void refuse_nul(const DocumentNode& node, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (text.find('\0') != std::string::npos) node.complain("a text holds a NUL");
  }
}

}  // namespace

Result<Configuration> parse_configuration(std::string_view text, std::string_view file_name,
                                          std::string_view home) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  if (!root.is_object()) root.complain("expected an object");
  root.allow_only({"manifests", "store", "base_stores", "sources", "trusted_keys",
                   "manifest_signatures", "key_statements", "revocations", "foreign_store"});
  Configuration found;
  read_paths(root.member("manifests"), home, found.manifests);
  const DocumentNode store = root.member("store");
  if (store.read(found.store)) found.store = expand_path(store, found.store, home);
  read_paths(root.member("base_stores"), home, found.base_stores);
  read_words(root.member("sources"), home, found.sources);
  read_keys(root.member("trusted_keys"), home, found.trusted_keys);
  read_policy(root.member("manifest_signatures"), found.manifest_signatures);
  read_paths(root.member("key_statements"), home, found.key_statements);
  read_paths(root.member("revocations"), home, found.revocations);
  read_policy(root.member("foreign_store"), found.foreign_store);
  for (const auto* texts : {&found.manifests, &found.base_stores, &found.sources,
                            &found.trusted_keys, &found.key_statements, &found.revocations}) {
    refuse_nul(root, *texts);
  }
  refuse_nul(root, {found.store});
  CUBIST_RETURN_IF_ERROR(document.status());
  return found;
}

ConfigurationPath configuration_path() {
  if (const char* named = std::getenv("CUBIST_CONFIG"); named != nullptr) {
    return {named, *named != '\0'};
  }
  // The XDG specification asks to ignore a relative path here.
  if (const std::string xdg = environment("XDG_CONFIG_HOME"); xdg.starts_with('/')) {
    return {xdg + "/cubist/config.json", false};
  }
  if (const std::string home = environment("HOME"); home.starts_with('/')) {
    return {home + "/.config/cubist/config.json", false};
  }
  return {};
}

Result<Configuration> load_configuration(const ConfigurationPath& place) {
  if (place.path.empty()) return Configuration();
  auto text = read_text_file(place.path, kMaxConfigurationBytes);
  if (!text) {
    struct stat info {};
    const bool absent = text.error().code() == StatusCode::kNotFound &&
                        ::lstat(place.path.c_str(), &info) != 0;  // no link that leads nowhere
    if (absent && !place.required) return Configuration();
    return forward_error(text, "configuration");
  }
  return parse_configuration(*text, place.path, environment("HOME"));
}

std::vector<std::pair<std::string, std::string>> as_environment(
    const Configuration& configuration) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) variables.emplace_back(name, std::move(value));
  };
  add("CUBIST_MANIFESTS", joined(configuration.manifests, ":"));
  add("CUBIST_STORE", configuration.store);
  add("CUBIST_STORE_BASE", joined(configuration.base_stores, ":"));
  add("CUBIST_SOURCES", joined(configuration.sources, " "));
  add("CUBIST_TRUSTED_KEYS", joined(configuration.trusted_keys, " "));
  add("CUBIST_MANIFEST_SIGNATURES", configuration.manifest_signatures);
  add("CUBIST_KEY_STATEMENTS", joined(configuration.key_statements, ":"));
  add("CUBIST_REVOCATIONS", joined(configuration.revocations, ":"));
  add("CUBIST_FOREIGN_STORE", configuration.foreign_store);
  return variables;
}

std::vector<std::string> sources_from_environment() {
  return environment_list("CUBIST_SOURCES", kWhiteSpace);
}

}  // namespace cubist::config
