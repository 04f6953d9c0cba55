#include "config/configuration.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/environment.h"
#include "base/file.h"
#include "base/secrets.h"
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
    node.complain(
        fmt::format("{} is no absolute path; write /PATH or ~/PATH", in_quotes(shown_value(text))));
  }
  return text;
}

struct Item {
  DocumentNode node;
  std::string text;
};

/// The texts of a list; each item that is none is complained about (null has been by now).
std::vector<Item> texts_of(const DocumentNode& node) {
  std::vector<Item> found;
  for (const DocumentNode& item : node.items()) {
    std::string text;
    if (item.read(text)) found.push_back({item, std::move(text)});
  }
  return found;
}

void refuse_colon(const DocumentNode& node, const std::string& path) {
  if (path.find(':') == std::string::npos) return;
  node.complain(fmt::format("{} holds a ':', which separates paths", in_quotes(shown_value(path))));
}

void read_paths(const DocumentNode& node, std::string_view home, std::vector<std::string>& out) {
  for (const Item& item : texts_of(node)) {
    out.push_back(expand_path(item.node, item.text, home));
    refuse_colon(item.node, out.back());
  }
}

void read_word(const Item& item, std::string_view home, std::vector<std::string>& out) {
  out.push_back(item.text.starts_with("~/") ? expand_path(item.node, item.text, home) : item.text);
  const std::string& word = out.back();
  if (word.empty()) item.node.complain("an empty text means nothing here");
  if (word.find_first_of(kWhiteSpace) == std::string::npos) return;
  item.node.complain(fmt::format("{} holds white space, which separates one from the next",
                                 in_quotes(shown_value(word))));
}

void read_words(const DocumentNode& node, std::string_view home, std::vector<std::string>& out) {
  for (const Item& item : texts_of(node)) read_word(item, home, out);
}

/// Public keys, or their files, which must not depend on where a command runs.
void read_keys(const DocumentNode& node, std::string_view home, std::vector<std::string>& out) {
  for (const Item& item : texts_of(node)) {
    read_word(item, home, out);
    if (out.back().ends_with(".pub")) out.back() = expand_path(item.node, out.back(), home);
  }
}

void read_policy(const DocumentNode& node, std::string& out) {
  if (!node.read(out) || out == "allow" || out == "warn" || out == "refuse") return;
  node.complain(
      fmt::format("is {}; it must be allow, warn or refuse", in_quotes(shown_value(out))));
}

void read_store(const DocumentNode& node, std::string_view home, std::string& out) {
  if (!node.read(out)) return;
  out = expand_path(node, out, home);
  refuse_colon(node, out);
}

bool holds_null(const DocumentNode& node) {
  if (!node.is_array()) return false;
  const std::vector<DocumentNode> items = node.items();
  return std::any_of(items.begin(), items.end(), [](const auto& item) { return !item.present(); });
}

bool holds_nul(const std::string& text) { return text.find('\0') != std::string::npos; }
bool holds_nul(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const auto& text) { return holds_nul(text); });
}

/// Takes over the keys one by one; one that somebody complains about stays as if it were not said.
class KeyReader {
 public:
  KeyReader(const Document& document, Configuration& out) : document_(document), out_(out) {}

  template <class Value, class Read>
  void take(std::string_view key, Value Configuration::*member, Read read) {
    const DocumentNode node = document_.root().member(key);
    if (!node.present()) return;
    const std::size_t before = document_.complaints().size();
    Value value;
    read(node, value);
    if (holds_nul(value)) node.complain("a text holds a NUL");
    if (holds_null(node)) return;  // complained about
    if (document_.complaints().size() != before || before == Document::kMaxComplaints) return;
    out_.*member = std::move(value);
    out_.places.emplace(key, fmt::format("{}: {}", node.place(), node.pointer()));
  }

 private:
  const Document& document_;
  Configuration& out_;
};

}  // namespace

Result<ReadConfiguration> read_configuration(std::string_view text, std::string_view file_name,
                                             std::string_view home) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  if (!root.is_object()) root.complain("expected an object");
  root.allow_only({"manifests", "store", "base_stores", "sources", "trusted_keys",
                   "manifest_signatures", "key_statements", "revocations", "foreign_store"});
  ReadConfiguration found;
  KeyReader keys(document, found.configuration);
  const auto with_home = [&](auto read) {
    return [read, home](const DocumentNode& node, auto& out) { read(node, home, out); };
  };
  if (root.is_object()) {
    keys.take("manifests", &Configuration::manifests, with_home(read_paths));
    keys.take("store", &Configuration::store, with_home(read_store));
    keys.take("base_stores", &Configuration::base_stores, with_home(read_paths));
    keys.take("sources", &Configuration::sources, with_home(read_words));
    keys.take("trusted_keys", &Configuration::trusted_keys, with_home(read_keys));
    keys.take("manifest_signatures", &Configuration::manifest_signatures, read_policy);
    keys.take("key_statements", &Configuration::key_statements, with_home(read_paths));
    keys.take("revocations", &Configuration::revocations, with_home(read_paths));
    keys.take("foreign_store", &Configuration::foreign_store, read_policy);
  }
  found.complaints = document.complaints();
  return found;
}

Result<Configuration> parse_configuration(std::string_view text, std::string_view file_name,
                                          std::string_view home) {
  CUBIST_ASSIGN_OR_RETURN(ReadConfiguration read, read_configuration(text, file_name, home));
  if (!read.complaints.empty()) return tl::unexpected<Error>(std::move(read.complaints.front()));
  return std::move(read.configuration);
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

Result<ReadConfiguration> load_all_of_configuration(const ConfigurationPath& place) {
  if (place.path.empty()) return ReadConfiguration();
  auto text = read_text_file(place.path, kMaxConfigurationBytes);
  if (!text) {
    struct stat info {};
    const bool absent = text.error().code() == StatusCode::kNotFound &&
                        ::lstat(place.path.c_str(), &info) != 0;  // no link that leads nowhere
    if (absent && !place.required) return ReadConfiguration();
    if (place.required && ::stat(place.path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      return fail(
          StatusCode::kInvalidArgument,
          "configuration '{}' is a folder; let CUBIST_CONFIG name a file, or nothing for none",
          place.path);
    }
    return forward_error(text, "configuration");
  }
  return read_configuration(*text, place.path, environment("HOME"));
}

Result<Configuration> load_configuration(const ConfigurationPath& place) {
  CUBIST_ASSIGN_OR_RETURN(ReadConfiguration read, load_all_of_configuration(place));
  if (!read.complaints.empty()) return tl::unexpected<Error>(std::move(read.complaints.front()));
  return std::move(read.configuration);
}

std::vector<EnvironmentValue> as_environment(const Configuration& configuration) {
  std::vector<EnvironmentValue> variables;
  const auto add = [&](const char* key, const char* name, std::string value) {
    if (value.empty()) return;
    const auto place = configuration.places.find(key);
    variables.push_back(
        {name, std::move(value), place == configuration.places.end() ? name : place->second});
  };
  add("manifests", "CUBIST_MANIFESTS", joined(configuration.manifests, ":"));
  add("store", "CUBIST_STORE", configuration.store);
  add("base_stores", "CUBIST_STORE_BASE", joined(configuration.base_stores, ":"));
  add("sources", "CUBIST_SOURCES", joined(configuration.sources, " "));
  add("trusted_keys", "CUBIST_TRUSTED_KEYS", joined(configuration.trusted_keys, " "));
  add("manifest_signatures", "CUBIST_MANIFEST_SIGNATURES", configuration.manifest_signatures);
  add("key_statements", "CUBIST_KEY_STATEMENTS", joined(configuration.key_statements, ":"));
  add("revocations", "CUBIST_REVOCATIONS", joined(configuration.revocations, ":"));
  add("foreign_store", "CUBIST_FOREIGN_STORE", configuration.foreign_store);
  return variables;
}

std::vector<std::string> sources_from_environment() {
  return environment_list("CUBIST_SOURCES", kWhiteSpace);
}

}  // namespace cubist::config
