#include "manifest/parse.h"

#include "base/file.h"
#include "manifest/json_events.h"
#include "manifest/manifest_reader.h"
#include "manifest/validate.h"

namespace cubist {

Result<Manifest> parse_manifest(const std::string& text, std::string_view file_name) {
  ManifestReader reader(file_name);
  if (!read_json(text, reader)) {
    reader = ManifestReader(file_name);
    if (!explain_json(text, reader)) return tl::unexpected<Error>(reader.take_error());
  }
  Manifest manifest = reader.take_manifest();
  CUBIST_RETURN_IF_ERROR(validate_manifest(manifest, file_name));
  return manifest;
}

Result<Manifest> load_manifest(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxManifestBytes));
  CUBIST_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(text, path));
  const std::size_t slash = path.rfind('/');
  manifest.folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return manifest;
}

}  // namespace cubist
