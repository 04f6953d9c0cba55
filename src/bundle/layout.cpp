#include "bundle/layout.h"

#include <algorithm>

#include "manifest/rules.h"
#include "registry/store_layout.h"

namespace cubist::bundle {

std::string manifest_member_name(std::string_view manifest) {
  return fmt::format("manifests/{}.json", manifest);
}

std::string signature_member_name(std::string_view manifest) {
  return manifest_member_name(manifest) + ".minisig";
}

// That of a store, so that a bundle is a source like a store is.
std::string kernel_member_name(const Sha256Digest& digest) { return entry_relative_path(digest); }

bool is_manifest_name(std::string_view name) {
  constexpr std::size_t kMost = 200;  // with ".json.minisig" and a temporary suffix below NAME_MAX
  return name.size() <= kMost && check_name(name, "").has_value() && !name.ends_with(".json");
}

std::vector<ExpectedMember> expected_members(const Description& description,
                                             std::uint64_t description_bytes) {
  std::vector<ExpectedMember> members;
  members.push_back({std::string(kDescriptionName), description_bytes});
  const auto add = [&](const Part& part) { members.push_back({part.path, part.size_bytes}); };
  for (const ManifestPart& manifest : description.manifests) {
    add(manifest.text);
    if (manifest.signature) add(*manifest.signature);
  }
  if (description.license) add(*description.license);
  if (description.notice) add(*description.notice);
  for (const Kernel& kernel : description.kernels) {
    members.push_back({kernel_member_name(kernel.sha256), kernel.size_bytes});
  }
  return members;
}

}  // namespace cubist::bundle
