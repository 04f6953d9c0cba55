#include "bundle/install.h"

#include "bundle/install_kernels.h"
#include "bundle/layout.h"
#include "bundle/place_manifest.h"
#include "document/json_text.h"

namespace cubist::bundle {
namespace {

Result<std::string> name_for(const Bundle& bundle, const ManifestPart& part,
                             const InstallOptions& options) {
  if (options.rename_to.empty()) return part.name;
  if (bundle.description().manifests.size() != 1) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' holds {} manifests; another name is for one alone", bundle.file_name(),
                bundle.description().manifests.size());
  }
  if (!is_manifest_name(options.rename_to)) {
    return fail(StatusCode::kInvalidArgument,
                "{} is no name for a manifest (letters, digits and _.-$+)",
                in_quotes(options.rename_to));
  }
  return options.rename_to;
}

}  // namespace

Result<InstallReport> install(const Bundle& bundle, const Store& store,
                              const InstallOptions& options) {
  CUBIST_ASSIGN_OR_RETURN(std::vector<IncomingManifest> incoming,
                          check_manifests(bundle, options.checks));
  const bool in_store = options.manifest_folder.empty();
  const std::string folder =
      in_store ? installed_manifest_folder(store.root()) : options.manifest_folder;
  std::vector<ManifestPlace> places;
  for (IncomingManifest& manifest : incoming) {
    CUBIST_ASSIGN_OR_RETURN(std::string name, name_for(bundle, *manifest.part, options));
    CUBIST_ASSIGN_OR_RETURN(ManifestPlace place, find_place(folder, std::move(name),
                                                            std::move(manifest), options.replace));
    places.push_back(std::move(place));
  }

  InstallReport report;
  CUBIST_RETURN_IF_ERROR(install_kernels(bundle, store, options, report));
  for (const ManifestPlace& place : places) {
    CUBIST_RETURN_IF_ERROR(put_in_place(place, folder, in_store ? store.root() + "/tmp" : folder));
    report.manifests.push_back({place.name, place.path, place.same_text});
  }
  if (options.checks.installed) options.checks.installed();
  return report;
}

}  // namespace cubist::bundle
