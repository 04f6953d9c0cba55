#include "registry/pip_requirement.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/sha256.h"

namespace cubist {
namespace {

using Json = nlohmann::json;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char lower(char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }

/// PEP 503.
std::string normalised_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator) {
      out += lower(c);
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  return out;
}

/// Enough of PEP 440 to compare what indexes write: case, "_" for "-", zeros at the end.
std::string normalised_version(std::string_view version) {
  std::string out;
  for (const char c : version) out += c == '_' ? '-' : lower(c);
  if (out.starts_with('v')) out.erase(0, 1);
  while (out.ends_with(".0")) out.resize(out.size() - 2);
  return out;
}

struct WheelName {
  std::string name;
  std::string version;
  bool any_platform = false;
};

/// name-version[-build]-python-abi-platform.whl (PEP 427)
std::optional<WheelName> parse_wheel_name(std::string_view filename) {
  constexpr std::string_view kEnd = ".whl";
  if (!filename.ends_with(kEnd)) return std::nullopt;
  filename.remove_suffix(kEnd.size());
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= filename.size();) {
    const std::size_t end = std::min(filename.find('-', begin), filename.size());
    parts.push_back(filename.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() != 5 && parts.size() != 6) return std::nullopt;
  return WheelName{normalised_name(parts[0]), std::string(parts[1]), parts.back() == "any"};
}

/// 0 does not match, 1 matches but for a local part, 2 matches.
int match_version(const std::string& listed, const std::string& wanted) {
  if (normalised_version(listed) == normalised_version(wanted)) return 2;
  const std::size_t plus = listed.find('+');
  if (wanted.find('+') != std::string::npos || plus == std::string::npos) return 0;
  return normalised_version(listed.substr(0, plus)) == normalised_version(wanted) ? 1 : 0;
}

std::string attribute(std::string_view tag, std::string_view name) {
  for (std::size_t at = 0; (at = tag.find(name, at)) != std::string_view::npos; at += name.size()) {
    std::size_t value = at + name.size();
    while (value < tag.size() && (tag[value] == ' ' || tag[value] == '=')) ++value;
    if (value >= tag.size() || (tag[value] != '"' && tag[value] != '\'')) continue;
    const std::size_t end = tag.find(tag[value], value + 1);
    if (end == std::string_view::npos) return {};
    return std::string(tag.substr(value + 1, end - value - 1));
  }
  return {};
}

std::string without_entities(std::string text) {
  constexpr std::string_view kAmpersand = "&amp;";
  for (std::size_t at = 0; (at = text.find(kAmpersand, at)) != std::string::npos; ++at) {
    text.replace(at, kAmpersand.size(), "&");
  }
  return text;
}

std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
    return -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += code ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (code) i += 2;
  }
  return out;
}

IndexFile file_of_link(std::string href) {
  IndexFile file;
  constexpr std::string_view kHash = "#sha256=";
  if (const std::size_t hash = href.find(kHash); hash != std::string::npos) {
    file.sha256 = href.substr(hash + kHash.size());
    if (!Sha256Digest::parse(file.sha256)) file.sha256.clear();
  }
  const std::string path = href.substr(0, href.find_first_of("?#"));
  file.filename = percent_decoded(path.substr(path.rfind('/') + 1));
  file.url = std::move(href);
  return file;
}

}  // namespace

Result<PipRequirement> parse_pip_requirement(std::string_view text) {
  const std::size_t sign = text.find("==");
  const std::string_view name = text.substr(0, sign);
  const std::string_view version =
      sign == std::string_view::npos ? std::string_view() : text.substr(sign + 2);
  const bool good_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  });
  const bool good_version =
      !version.empty() && std::all_of(version.begin(), version.end(), [](char c) {
        return is_letter_or_digit(c) || std::string_view(".!+-_").find(c) != std::string_view::npos;
      });
  if (!good_name || !good_version || normalised_name(name).empty()) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' does not name one release; expected NAME==VERSION, e.g. "
                "pip:flashinfer-cubin==0.6.13",
                text);
  }
  return PipRequirement{normalised_name(name), std::string(version)};
}

Result<std::vector<IndexFile>> parse_index_json(std::string_view text) {
  const Json page = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const auto files = page.is_object() ? page.find("files") : page.end();
  if (!page.is_object() || files == page.end() || !files->is_array()) {
    return fail(StatusCode::kNetwork,
                "the package index's answer is not the JSON form of the simple repository API");
  }
  std::vector<IndexFile> found;
  for (const Json& entry : *files) {
    if (!entry.is_object()) continue;
    const auto filename = entry.find("filename");
    const auto url = entry.find("url");
    if (filename == entry.end() || !filename->is_string() || url == entry.end() ||
        !url->is_string()) {
      continue;
    }
    IndexFile file{filename->get<std::string>(), url->get<std::string>(), {}, std::nullopt};
    if (const auto hashes = entry.find("hashes"); hashes != entry.end() && hashes->is_object()) {
      const auto digest = hashes->find("sha256");
      if (digest != hashes->end() && digest->is_string() &&
          Sha256Digest::parse(digest->get<std::string>())) {
        file.sha256 = digest->get<std::string>();
      }
    }
    if (const auto size = entry.find("size"); size != entry.end() && size->is_number_unsigned()) {
      file.size_bytes = size->get<std::uint64_t>();
    }
    found.push_back(std::move(file));
  }
  return found;
}

std::vector<IndexFile> parse_index_html(std::string_view text) {
  std::vector<IndexFile> found;
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find('>', at), text.size());
    const std::string_view tag = text.substr(at, end - at);
    at = end;
    if (tag.size() < 3 || lower(tag[1]) != 'a' || (tag[2] != ' ' && tag[2] != '\n')) continue;
    std::string href = without_entities(attribute(tag, "href"));
    if (!href.empty()) found.push_back(file_of_link(std::move(href)));
  }
  return found;
}

const IndexFile* choose_wheel(const std::vector<IndexFile>& files,
                              const PipRequirement& requirement) {
  const IndexFile* best = nullptr;
  int best_score = 0;
  for (const IndexFile& file : files) {
    const auto wheel = parse_wheel_name(file.filename);
    if (!wheel || wheel->name != requirement.name) continue;
    const int match = match_version(wheel->version, requirement.version);
    const int score = match == 0 ? 0 : 2 * match + (wheel->any_platform ? 1 : 0);
    if (score > best_score) {
      best = &file;
      best_score = score;
    }
  }
  return best;
}

std::vector<std::string> wheel_versions(const std::vector<IndexFile>& files,
                                        const PipRequirement& requirement) {
  std::vector<std::string> versions;
  for (const IndexFile& file : files) {
    const auto wheel = parse_wheel_name(file.filename);
    if (!wheel || wheel->name != requirement.name) continue;
    if (std::find(versions.begin(), versions.end(), wheel->version) == versions.end()) {
      versions.push_back(wheel->version);
    }
  }
  return versions;
}

}  // namespace cubist
