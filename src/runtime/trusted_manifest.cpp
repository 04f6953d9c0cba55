#include "runtime/trusted_manifest.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>

#include "base/file.h"
#include "base/log.h"
#include "manifest/parse.h"
#include "registry/manifest_index.h"
#include "runtime/manifest_path.h"

namespace cubist::runtime {
namespace {

/// Serials count by the name that was signed, and a file's name is not signed.
void warn_of_other_name(const std::string& name, const std::string& path) {
  const std::filesystem::path file(path);
  if (file.stem() == name) return;
  const std::vector<std::string> folders = manifest_folders();
  // A store given by a flag is not among those.
  const bool in_store = file.parent_path().filename() == "manifests";
  const bool by_name =
      in_store || std::any_of(folders.begin(), folders.end(), [&](const auto& folder) {
        return std::filesystem::path(folder) / file.filename() == file;
      });
  if (!by_name) return;
  log(LogLevel::kWarning,
      "'{}' is the signed manifest '{}' under another name: older ones of '{}' are not told from "
      "it",
      path, name, file.stem().string());
}

using Parse = std::function<Result<Manifest>()>;

/// text   what the signature is checked of
/// parse  asked only if that went well
Result<TrustedManifest> open_trusted(std::string_view text, const std::string& path,
                                     trust::Trust& trust, const Parse& parse) {
  TrustedManifest opened;
  opened.shipped = is_shipped(path);
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()),
                                            text.size());
  CUBIST_ASSIGN_OR_RETURN(opened.signed_by, trust.check_manifest(bytes, path, opened.shipped));
  CUBIST_ASSIGN_OR_RETURN(opened.manifest, parse());
  const Manifest& manifest = opened.manifest;
  const bool is_signed = opened.signed_by.has_value();
  CUBIST_RETURN_IF_ERROR(trust.check_facts({manifest.name, manifest.serial, manifest.expires,
                                            is_signed ? sha256(bytes) : Sha256Digest()},
                                           path, is_signed));
  if (is_signed) warn_of_other_name(manifest.name, path);
  return opened;
}

}  // namespace

Result<TrustedManifest> parse_trusted_manifest(const std::string& text, const std::string& path,
                                               trust::Trust& trust) {
  return open_trusted(text, path, trust, [&]() -> Result<Manifest> {
    CUBIST_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(text, path));
    const std::size_t slash = path.rfind('/');
    manifest.folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    return manifest;
  });
}

Result<TrustedManifest> load_trusted_manifest(const std::string& path, trust::Trust& trust,
                                              const Store& store) {
  const ManifestIndex index(store, path);
  // Without a key no signature is looked at, so that the text need not be read.
  if (!trust.checks_signatures()) {
    return open_trusted({}, path, trust, [&] { return index.load(); });
  }
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxManifestBytes));
  return open_trusted(text, path, trust, [&] { return index.parse(text); });
}

std::vector<selector::BarredKernel> barred_kernels(const trust::RevokedKernels& revoked) {
  std::vector<selector::BarredKernel> barred;
  barred.reserve(revoked.size());
  for (const auto& [digest, why] : revoked.all()) barred.push_back({digest, why});
  // Not in the order of a hash table: what explain prints must not change from run to run.
  std::sort(barred.begin(), barred.end(),
            [](const auto& a, const auto& b) { return a.sha256 < b.sha256; });
  return barred;
}

}  // namespace cubist::runtime
