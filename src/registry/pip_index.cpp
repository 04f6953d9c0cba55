#include "registry/pip_index.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "registry/pip_requirement.h"

namespace cubist {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxPageBytes = 64 * 1024 * 1024;
constexpr const char* kAccept =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1";
constexpr std::size_t kVersionsShown = 8;

/// The path of a folder given as such or as file: URL; empty for anything else.
std::string local_path(const std::string& location) {
  constexpr std::string_view kFile = "file://";
  if (location.starts_with(kFile)) return location.substr(kFile.size());
  return location.find("://") == std::string::npos ? location : std::string();
}

std::optional<LocalWheel> find_in_folder(const std::string& folder,
                                         const PipRequirement& requirement) {
  std::vector<IndexFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    files.push_back({entry->path().filename().string(), {}, {}, std::nullopt});
  }
  const IndexFile* wheel = choose_wheel(files, requirement);
  if (wheel == nullptr) return std::nullopt;
  return LocalWheel{folder + "/" + wheel->filename};
}

std::string list_tail(const std::vector<std::string>& versions) {
  std::string text;
  const std::size_t first = versions.size() - std::min(versions.size(), kVersionsShown);
  for (std::size_t i = first; i < versions.size(); ++i) {
    text += (text.empty() ? "" : ", ") + versions[i];
  }
  return text;
}

Result<std::vector<IndexFile>> read_page(HttpClient& client, const Url& url,
                                         const std::shared_ptr<const HttpProfile>& profile,
                                         Url& final_url) {
  HttpRequest request;
  request.url = url;
  request.profile = profile;
  request.accept = kAccept;
  request.max_bytes = kMaxPageBytes;
  request.html_is_fine = true;
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, to_result(client.get(std::move(request))));
  final_url = response.final_url;
  const std::string_view text(reinterpret_cast<const char*>(response.body.data()),
                              response.body.size());
  if (response.content_type.find("json") == std::string::npos) return parse_index_html(text);
  auto files = parse_index_json(text);
  if (!files) return forward_error(files, url.shown());
  return files;
}

/// One index: its page of the project, and the wheel in it.
Result<PipWheel> find_in_page(HttpClient& client, const Url& page,
                              const PipRequirement& requirement,
                              const std::shared_ptr<const HttpProfile>& profile) {
  Url final_url;
  CUBIST_ASSIGN_OR_RETURN(const std::vector<IndexFile> files,
                          read_page(client, page, profile, final_url));
  const IndexFile* wheel = choose_wheel(files, requirement);
  if (wheel == nullptr) {
    const std::vector<std::string> versions = wheel_versions(files, requirement);
    return fail(StatusCode::kNotFound, "{} lists no wheel of {} {}{}", page.shown(),
                requirement.name, requirement.version,
                versions.empty() ? "" : "; it has " + list_tail(versions));
  }
  // Relative links are relative to where the page really was, but credentials stay with the index.
  Url base = final_url;
  if (base.same_origin(page)) {
    base.user = page.user;
    base.password = page.password;
  }
  CUBIST_ASSIGN_OR_RETURN(Url url, resolve_url(base, wheel->url));
  if (url.user.empty() && url.same_origin(page)) {
    url.user = page.user;
    url.password = page.password;
  }
  return PipWheel(RemoteWheel{std::move(url), wheel->sha256, profile});
}

}  // namespace

Result<PipWheel> find_pip_wheel(HttpClient& client, std::string_view requirement,
                                const HttpProfile& base, const PipSettings& settings) {
  CUBIST_ASSIGN_OR_RETURN(const PipRequirement wanted, parse_pip_requirement(requirement));
  const auto profile = profile_for_pip(settings, base);
  std::string causes;
  StatusCode code = StatusCode::kNotFound;
  const auto note = [&](const Error& error) {
    causes += "\n  " + error.message();
    if (code == StatusCode::kNotFound || error.code() == StatusCode::kInterrupted) {
      code = error.code();
    }
  };
  std::vector<std::string> pages;
  for (const std::string& link : settings.find_links) {
    if (const std::string folder = local_path(link); folder.empty()) {
      pages.push_back(link);
    } else if (auto wheel = find_in_folder(folder, wanted)) {
      return PipWheel(std::move(*wheel));
    }
  }
  for (const std::string& index : settings.index_urls) {
    if (const std::string folder = local_path(index); folder.empty()) {
      pages.push_back(index + (index.ends_with('/') ? "" : "/") + wanted.name + "/");
    } else if (auto wheel = find_in_folder(folder + "/" + wanted.name, wanted)) {
      return PipWheel(std::move(*wheel));
    }
  }
  for (const std::string& page : pages) {
    const auto url = parse_url(page);
    auto wheel = url ? find_in_page(client, *url, wanted, profile)
                     : Result<PipWheel>(tl::unexpected<Error>(url.error()));
    if (wheel) return wheel;
    note(wheel.error());
  }
  if (causes.empty()) causes = "\n  pip is configured with no index";
  return fail(code, "pip:{}=={} was not found where pip would look:{}", wanted.name, wanted.version,
              causes);
}

Result<PipWheel> find_pip_wheel(HttpClient& client, std::string_view requirement,
                                const HttpProfile& base) {
  CUBIST_RETURN_IF_ERROR(parse_pip_requirement(requirement));
  CUBIST_ASSIGN_OR_RETURN(const PipSettings settings, ask_pip());
  return find_pip_wheel(client, requirement, base, settings);
}

}  // namespace cubist
