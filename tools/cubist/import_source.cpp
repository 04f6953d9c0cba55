#include "import_source.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "registry/http_range_access.h"
#include "registry/pip_index.h"

namespace cubist::tools {
namespace {

constexpr std::string_view kPipPrefix = "pip:";

Result<std::unique_ptr<FileTree>> open_remote(HttpClient& client, Url url,
                                              std::shared_ptr<const HttpProfile> profile) {
  CUBIST_ASSIGN_OR_RETURN(std::shared_ptr<RandomAccess> access,
                          HttpRangeAccess::open(client, std::move(url), std::move(profile)));
  return open_zip_tree(std::move(access));
}

/// Absolute, since a manifest may come to name it.
Result<std::unique_ptr<FileTree>> open_local(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return open_file_tree(error ? path : absolute.lexically_normal().string());
}

Result<std::unique_ptr<FileTree>> open_pip(HttpClient& client, std::string_view requirement,
                                           std::shared_ptr<const HttpProfile> profile) {
  CUBIST_ASSIGN_OR_RETURN(PipWheel wheel, find_pip_wheel(client, requirement, *profile));
  if (const auto* local = std::get_if<LocalWheel>(&wheel)) return open_local(local->path);
  auto& remote = std::get<RemoteWheel>(wheel);
  return open_remote(client, std::move(remote.url), std::move(remote.profile));
}

}  // namespace

Result<ImportSource> open_import_source(const std::string& text, const std::atomic<bool>* cancel) {
  ImportSource source;
  const bool is_pip = text.starts_with(kPipPrefix);
  if (!is_pip && !looks_like_url(text)) {
    CUBIST_ASSIGN_OR_RETURN(source.tree, open_local(text));
    return source;
  }
  source.client = std::make_unique<HttpClient>(1, cancel);
  auto profile = std::make_shared<const HttpProfile>(http_profile_from_environment());
  if (is_pip) {
    const std::string_view requirement = std::string_view(text).substr(kPipPrefix.size());
    CUBIST_ASSIGN_OR_RETURN(source.tree, open_pip(*source.client, requirement, std::move(profile)));
    return source;
  }
  CUBIST_ASSIGN_OR_RETURN(Url url, parse_url(text));
  CUBIST_ASSIGN_OR_RETURN(source.tree,
                          open_remote(*source.client, std::move(url), std::move(profile)));
  return source;
}

}  // namespace cubist::tools
