#include "registry/source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "archive/zip.h"
#include "base/file.h"
#include "registry/http_range_access.h"
#include "registry/pip_index.h"
#include "registry/pip_requirement.h"
#include "registry/source_kinds.h"

namespace cubist {
namespace {

constexpr std::string_view kPipScheme = "pip:";
constexpr std::string_view kOciScheme = "oci://";

bool names_a_zip(std::string_view location) {
  const std::string_view path = location.substr(0, location.find_first_of("?#"));
  return path.ends_with(".whl") || path.ends_with(".zip");
}

}  // namespace

Result<Source> parse_source(std::string_view text) {
  Source source;
  source.location = std::string(text);
  if (text.starts_with(kPipScheme)) {
    source.kind = Source::Kind::kPip;
    source.location.erase(0, kPipScheme.size());
    CUBIST_RETURN_IF_ERROR(parse_pip_requirement(source.location));
    return source;
  }
  if (text.starts_with(kOciScheme)) {
    source.kind = Source::Kind::kOci;
    return source;
  }
  if (looks_like_url(text)) {
    CUBIST_RETURN_IF_ERROR(parse_url(text));
    source.kind = names_a_zip(text) ? Source::Kind::kZip : Source::Kind::kHttp;
    return source;
  }
  if (text.find("://") != std::string_view::npos) {
    return fail(StatusCode::kInvalidArgument,
                "source '{}' is of a kind that is not known; expected http://, https://, "
                "oci://, pip:NAME==VERSION, a folder or a wheel",
                shown_value(text));
  }
  struct stat info {};
  if (::stat(source.location.c_str(), &info) != 0) {
    if (text.starts_with("oci:")) {
      return fail(StatusCode::kInvalidArgument,
                  "source '{}' is no folder or file; a bundle in a registry is "
                  "oci://HOST/REPOSITORY:TAG, and 'cubist pull oci://...' brings all of it",
                  shown_value(text));
    }
    return tl::unexpected<Error>(
        errno_error("cannot use as a source", shown_value(source.location), errno));
  }
  source.kind = S_ISDIR(info.st_mode) ? Source::Kind::kFolder : Source::Kind::kZip;
  return source;
}

std::string to_string(const Source& source) {
  if (source.kind == Source::Kind::kPip) return std::string(kPipScheme) + source.location;
  if (source.kind == Source::Kind::kOci) return shown_value(source.location);
  if (!looks_like_url(source.location)) return source.location;
  const auto url = parse_url(source.location);
  return url ? url->shown() : shown_value(source.location);
}

bool needs_network(const Source& source) {
  return source.kind == Source::Kind::kPip || source.kind == Source::Kind::kOci ||
         looks_like_url(source.location);
}

std::string located(const std::string& location, const std::string& manifest_folder) {
  if (location.starts_with('/') || manifest_folder.empty()) return location;
  namespace fs = std::filesystem;
  const fs::path path = fs::path(manifest_folder) / location;
  const fs::path shorter = path.lexically_normal();
  // "a/../b" is not "b" where a is a link to a folder elsewhere.
  std::error_code error;
  return (fs::equivalent(path, shorter, error) && !error ? shorter : path).string();
}

std::vector<std::string> candidate_paths(const KernelRecord& record, const Source& source,
                                         bool named_by_user,
                                         const std::vector<std::string>& prefixes) {
  if (!named_by_user) return {source.prefix + record.file()};
  std::vector<std::string> paths{source.prefix + record.file()};
  for (const std::string& prefix : prefixes) paths.push_back(prefix + record.file());
  paths.push_back(record.file());
  paths.push_back(entry_relative_path(record.sha256));
  std::vector<std::string> distinct;
  for (std::string& path : paths) {
    if (std::find(distinct.begin(), distinct.end(), path) == distinct.end()) {
      distinct.push_back(std::move(path));
    }
  }
  return distinct;
}

Result<std::unique_ptr<OpenSource>> open_source(const Source& source, bool named_by_user,
                                                const SourceContext& context) {
  switch (source.kind) {
    case Source::Kind::kHttp: {
      CUBIST_ASSIGN_OR_RETURN(Url url, parse_url(source.location));
      return make_http_source(source, std::move(url), named_by_user, context);
    }
    case Source::Kind::kFolder:
      return make_folder_source(source, named_by_user, context);
    case Source::Kind::kZip:
    case Source::Kind::kPip:
      return make_zip_source(source, named_by_user, context);
    case Source::Kind::kOci:
      if (context.open_oci) return context.open_oci(source, context);
      return fail(StatusCode::kInvalidArgument,
                  "'{}' can be read by the command line alone: 'cubist fetch' or 'cubist pull' "
                  "brings kernels from there into the store",
                  to_string(source));
  }
  return fail(StatusCode::kInternal, "a source of no known kind");
}

Result<std::shared_ptr<RandomAccess>> open_location(std::string_view location, HttpClient& client) {
  const auto open_url =
      [&](Url url,
          std::shared_ptr<const HttpProfile> profile) -> Result<std::shared_ptr<RandomAccess>> {
    CUBIST_ASSIGN_OR_RETURN(auto access,
                            HttpRangeAccess::open(client, std::move(url), std::move(profile)));
    return std::shared_ptr<RandomAccess>(std::move(access));
  };
  if (looks_like_url(location)) {
    CUBIST_ASSIGN_OR_RETURN(Url url, parse_url(location));
    return open_url(std::move(url),
                    std::make_shared<const HttpProfile>(http_profile_from_environment()));
  }
  if (!location.starts_with(kPipScheme)) return open_file_access(std::string(location));
  CUBIST_ASSIGN_OR_RETURN(PipWheel wheel, find_pip_wheel(client, location.substr(kPipScheme.size()),
                                                         http_profile_from_environment()));
  if (const auto* local = std::get_if<LocalWheel>(&wheel)) return open_file_access(local->path);
  auto& remote = std::get<RemoteWheel>(wheel);
  return open_url(std::move(remote.url), std::move(remote.profile));
}

}  // namespace cubist
