#include "runtime/cubin_provider.h"

#include "base/file.h"

namespace cubist::runtime {

Result<VerifiedCubin> CubinProvider::get(const Manifest& manifest, const Pack& pack,
                                         const KernelRecord& record) const {
  CUBIST_ASSIGN_OR_RETURN(std::optional<VerifiedCubin> stored, store_.open_verified(record));
  if (stored) return *std::move(stored);
  return fetch(manifest, pack, record);
}

Result<VerifiedCubin> CubinProvider::fetch(const Manifest& manifest, const Pack& pack,
                                           const KernelRecord& record) const {
  for (const Source& source : pack.sources) {
    if (source.kind != Source::Kind::kFolder) continue;
    const bool absolute = source.location.starts_with('/');
    const std::string path = fmt::format("{}{}/{}{}", absolute ? "" : manifest.folder + "/",
                                         source.location, source.prefix, record.path);
    CUBIST_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, read_file(path, record.size_bytes));
    CUBIST_ASSIGN_OR_RETURN(
        VerifiedCubin cubin,
        VerifiedCubin::verify(std::move(bytes), record.sha256, record.size_bytes, path));
    auto installed = store_.install(cubin);
    if (!installed) return forward_error(installed);
    return cubin;
  }
  return fail(StatusCode::kOffline, "kernel '{}' is not in the store and has no folder source",
              record.name);
}

}  // namespace cubist::runtime
