#include "bundle/place_manifest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "manifest/parse.h"

namespace cubist::bundle {
namespace {

/// A file that nobody but an earlier install should have put there: a link is not followed.
/// Nothing if there is no such name.
Result<std::optional<std::string>> read_there(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return tl::unexpected<Error>(errno_error("cannot inspect", path, errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(StatusCode::kIo,
                "'{}' is where a manifest belongs, and no regular file (a link, folder or device); "
                "remove it and run the command again",
                path);
  }
  CUBIST_ASSIGN_OR_RETURN(std::string text, read_text_file(path, kMaxManifestBytes));
  return std::optional<std::string>(std::move(text));
}

Status check_folder(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return {};
  return fail(StatusCode::kIo,
              "'{}' is where manifests belong, and no folder (links are not followed); remove it "
              "or name another place",
              folder);
}

Result<StagedFile> stage(const std::string& text, const std::string& staging) {
  CUBIST_ASSIGN_OR_RETURN(StagedFile file, StagedFile::create(staging));
  CUBIST_RETURN_IF_ERROR(
      file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  CUBIST_RETURN_IF_ERROR(file.make_read_only());
  CUBIST_RETURN_IF_ERROR(file.sync());
  return file;
}

std::string signature_path(const ManifestPlace& place) { return place.path + ".minisig"; }

}  // namespace

Result<ManifestPlace> find_place(const std::string& folder, std::string name,
                                 IncomingManifest incoming, bool replace) {
  CUBIST_RETURN_IF_ERROR(check_folder(folder));
  ManifestPlace place;
  place.path = fmt::format("{}/{}.json", folder, name);
  place.name = std::move(name);
  place.incoming = std::move(incoming);
  CUBIST_ASSIGN_OR_RETURN(const auto text, read_there(place.path));
  CUBIST_ASSIGN_OR_RETURN(const auto signature, read_there(signature_path(place)));
  place.same_text = text == place.incoming.text;
  place.same_signature = signature == place.incoming.signature;
  if (text && !place.same_text && !replace) {
    return fail(StatusCode::kInvalidArgument,
                "another manifest is called '{}': '{}' has sha256 {}, '{}' has {}; nothing was "
                "installed. --replace takes its place, --as NAME gives this one another name",
                place.name, place.path,
                sha256({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()}).hex(),
                place.incoming.origin, place.incoming.part->text.sha256.hex());
  }
  return place;
}

Result<StagedManifest> stage_manifest(const ManifestPlace& place, const std::string& folder,
                                      const std::string& staging) {
  StagedManifest staged;
  if (place.same_text && place.same_signature) return staged;
  CUBIST_RETURN_IF_ERROR(make_folders(folder));
  CUBIST_RETURN_IF_ERROR(make_folders(staging));
  if (!place.same_signature && place.incoming.signature) {
    CUBIST_ASSIGN_OR_RETURN(staged.signature, stage(*place.incoming.signature, staging));
  }
  if (!place.same_text) {
    CUBIST_ASSIGN_OR_RETURN(staged.text, stage(place.incoming.text, staging));
  }
  return staged;
}

Status put_in_place(StagedManifest staged, const ManifestPlace& place, const std::string& folder) {
  if (place.same_text && place.same_signature) return {};
  // Whoever is stopped between the two leaves at most a signature that does not fit: a manifest
  // that is refused, not one that is believed wrongly.
  const std::string signature = signature_path(place);
  if (staged.signature) CUBIST_RETURN_IF_ERROR(staged.signature->publish_over(signature));
  if (staged.text) CUBIST_RETURN_IF_ERROR(staged.text->publish_over(place.path));
  if (!place.same_signature && !place.incoming.signature) ::unlink(signature.c_str());
  return sync_folder(folder);
}

}  // namespace cubist::bundle
