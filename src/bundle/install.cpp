#include "bundle/install.h"

#include "bundle/install_kernels.h"
#include "bundle/keep_bundle.h"
#include "bundle/layout.h"
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

Result<Admission> admit(const Bundle& bundle, const Store& store, const InstallOptions& options) {
  CUBIST_ASSIGN_OR_RETURN(std::vector<IncomingManifest> incoming,
                          check_manifests(bundle, options.checks));
  Admission admission;
  const bool in_store = options.manifest_folder.empty();
  admission.folder = in_store ? installed_manifest_folder(store.root()) : options.manifest_folder;
  admission.staging = in_store ? store.root() + "/tmp" : admission.folder;
  for (IncomingManifest& manifest : incoming) {
    CUBIST_ASSIGN_OR_RETURN(std::string name, name_for(bundle, *manifest.part, options));
    CUBIST_ASSIGN_OR_RETURN(ManifestPlace place, find_place(admission.folder, std::move(name),
                                                            std::move(manifest), options.replace));
    admission.places.push_back(std::move(place));
  }
  return admission;
}

Result<std::vector<StagedManifest>> stage_manifests(const Admission& admission) {
  std::vector<StagedManifest> staged;
  for (const ManifestPlace& place : admission.places) {
    CUBIST_ASSIGN_OR_RETURN(StagedManifest manifest,
                            stage_manifest(place, admission.folder, admission.staging));
    staged.push_back(std::move(manifest));
  }
  return staged;
}

Status put_manifests(std::vector<StagedManifest> staged, const Admission& admission,
                     const InstallOptions& options, InstallReport& report) {
  for (std::size_t i = 0; i < staged.size(); ++i) {
    const ManifestPlace& place = admission.places[i];
    CUBIST_RETURN_IF_ERROR(put_in_place(std::move(staged[i]), place, admission.folder));
    report.manifests.push_back({place.name, place.path, place.same_text});
  }
  if (options.checks.installed) options.checks.installed();
  return {};
}

Result<InstallReport> install(const Bundle& bundle, const Store& store,
                              const InstallOptions& options) {
  CUBIST_ASSIGN_OR_RETURN(const Admission admission, admit(bundle, store, options));
  InstallReport report;
  CUBIST_RETURN_IF_ERROR(options.unpack ? install_kernels(bundle, store, options, report)
                                        : keep_bundle(bundle, store, options, report));
  CUBIST_ASSIGN_OR_RETURN(std::vector<StagedManifest> staged, stage_manifests(admission));
  CUBIST_RETURN_IF_ERROR(put_manifests(std::move(staged), admission, options, report));
  return report;
}

}  // namespace cubist::bundle
