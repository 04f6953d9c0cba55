#include "bundle_notices.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/file.h"
#include "bundle/layout.h"
#include "document/json_text.h"

namespace cubist::tools {
namespace {

/// An SPDX identifier that can be a file's name; expressions ("MIT OR Zlib") are none.
bool is_licence_id(std::string_view text) {
  return !text.empty() && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '+';
         });
}

/// Nothing where no folder has it.
Result<std::optional<std::string>> find_licence_text(const std::string& id,
                                                     const std::vector<std::string>& folders) {
  if (!is_licence_id(id)) return std::optional<std::string>();
  for (const std::string& folder : folders) {
    auto text =
        read_text_file(fmt::format("{}/licenses/{}.txt", folder, id), bundle::kMaxTextBytes);
    if (text) return std::optional<std::string>(std::move(*text));
    if (text.error().code() != StatusCode::kNotFound) return forward_error(text);
  }
  return std::optional<std::string>();
}

std::string pack_line(const bundle::PackOrigin& pack) {
  return fmt::format("{}{}{}: {}", pack.name, pack.version.empty() ? "" : " ", pack.version,
                     pack.license.empty() ? "its manifest names no licence" : pack.license);
}

Status append_files(const std::vector<std::string>& files, std::string& text) {
  for (const std::string& file : files) {
    CUBIST_ASSIGN_OR_RETURN(const std::string more, read_text_file(file, bundle::kMaxTextBytes));
    text += "\n" + more;
    if (!text.ends_with('\n')) text += '\n';
  }
  return {};
}

}  // namespace

Result<BundleNotices> make_notices(const std::vector<bundle::PackOrigin>& packs,
                                   const std::vector<std::string>& folders,
                                   const std::vector<std::string>& license_files,
                                   const std::vector<std::string>& notice_files) {
  BundleNotices notices;
  notices.license = "Licences of the kernels in this bundle, by pack:\n\n";
  notices.notice = "The kernels in this bundle are byte for byte those of:\n\n";
  std::set<std::string> licences;
  for (const bundle::PackOrigin& pack : packs) {
    notices.license += "  " + pack_line(pack) + "\n";
    notices.notice += fmt::format(
        "  {}\n    from {}\n", pack_line(pack),
        pack.sources.empty() ? "no source that its manifest names" : joined(pack.sources));
    if (!pack.license.empty()) licences.insert(pack.license);
  }
  for (const std::string& licence : licences) {
    CUBIST_ASSIGN_OR_RETURN(const auto text, find_licence_text(licence, folders));
    if (text) {
      notices.license += "\n" + *text;
    } else if (license_files.empty()) {
      return fail(StatusCode::kNotFound,
                  "no text of licence {} is here (licenses/{}.txt in a folder of manifests); give "
                  "it with --license FILE, since a bundle hands kernels on",
                  in_quotes(licence), licence);
    }
  }
  CUBIST_RETURN_IF_ERROR(append_files(license_files, notices.license));
  CUBIST_RETURN_IF_ERROR(append_files(notice_files, notices.notice));
  return notices;
}

}  // namespace cubist::tools
