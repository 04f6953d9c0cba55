#include "bundle/description.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "bundle/layout.h"
#include "document/document.h"
#include "document/json_text.h"
#include "document/schema_head.h"
#include "manifest/parse.h"
#include "manifest/validate.h"

// bundle.json:
//
//   {
//     "schema": "cubist.bundle", "schema_version": 1,
//     "name": "...",
//     "provenance": { "tool": "cubist 0.1.0",
//                     "packs": [ {"name", "version", "license", "sources": ["pip:...", ...]} ] },
//     "manifests": [ {"name", "sha256", "size", "signature": {"sha256", "size"} or none} ],
//     "license": {"sha256", "size"} or none,   "notice": the same
//     "kernels": [ {"sha256", "size"} ]
//   }
//
// Members' names are not in it: they follow from what they are (layout.h).

namespace cubist::bundle {
namespace {

constexpr std::string_view kSchema = "cubist.bundle";

std::string digest_and_size(const Sha256Digest& sha256, std::uint64_t size_bytes) {
  return fmt::format("\"sha256\":\"{}\",\"size\":{}", sha256.hex(), size_bytes);
}

std::string part_json(const Part& part) {
  return fmt::format("{{{}}}", digest_and_size(part.sha256, part.size_bytes));
}

std::string pack_json(const PackOrigin& pack) {
  std::vector<std::string> sources;
  for (const std::string& source : pack.sources) sources.push_back(json_string(source));
  return fmt::format("{{\"name\":{},\"version\":{},\"license\":{},\"sources\":[{}]}}",
                     json_string(pack.name), json_string(pack.version), json_string(pack.license),
                     joined(sources));
}

std::string manifest_json(const ManifestPart& manifest) {
  std::string text = fmt::format("{{\"name\":{},{}", json_string(manifest.name),
                                 digest_and_size(manifest.text.sha256, manifest.text.size_bytes));
  if (manifest.signature) text += ",\"signature\":" + part_json(*manifest.signature);
  return text + "}";
}

std::string kernel_json(const Kernel& kernel) {
  return fmt::format("{{{}}}", digest_and_size(kernel.sha256, kernel.size_bytes));
}

/// One item a line.
template <class Items, class ToJson>
std::string list_json(const Items& items, const ToJson& to_json) {
  std::string text = "[";
  for (const auto& item : items) {
    text += text.size() == 1 ? "\n" : ",\n";
    text += to_json(item);
  }
  return text + "\n]";
}

void read_digest_and_size(const DocumentNode& node, std::uint64_t max_size, Sha256Digest& sha256,
                          std::uint64_t& size_bytes) {
  std::string hex;
  if (const DocumentNode at = node.required("sha256"); at.read(hex)) {
    const auto digest = Sha256Digest::parse(hex);
    if (digest && digest->hex() == hex) {
      sha256 = *digest;
    } else {
      at.complain("expected 64 hexadecimal digits in lower case");
    }
  }
  std::int64_t size = 0;
  if (node.required("size").read_integer(size, 1, static_cast<std::int64_t>(max_size))) {
    size_bytes = static_cast<std::uint64_t>(size);
  }
}

Part read_part(const DocumentNode& node, std::string path, std::uint64_t max_size) {
  Part part;
  part.path = std::move(path);
  node.allow_only({"sha256", "size"});
  read_digest_and_size(node, max_size, part.sha256, part.size_bytes);
  return part;
}

std::optional<Part> read_text_part(const DocumentNode& node, std::string_view path) {
  if (!node.present()) return std::nullopt;
  return read_part(node, std::string(path), kMaxTextBytes);
}

void read_provenance(const DocumentNode& node, Description& description) {
  node.allow_only({"tool", "packs"});
  node.required("tool").read(description.tool);
  for (const DocumentNode& item : node.required("packs").items()) {
    item.allow_only({"name", "version", "license", "sources"});
    PackOrigin pack;
    item.required("name").read(pack.name);
    item.required("version").read(pack.version);
    item.required("license").read(pack.license);
    item.required("sources").read_strings(pack.sources);
    description.packs.push_back(std::move(pack));
  }
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

void read_manifests(const DocumentNode& node, Description& description) {
  std::set<std::string> names;
  for (const DocumentNode& item : node.items()) {
    item.allow_only({"name", "sha256", "size", "signature"});
    ManifestPart manifest;
    const DocumentNode name = item.required("name");
    if (!name.read(manifest.name)) continue;
    if (!is_manifest_name(manifest.name)) {
      name.complain(in_quotes(manifest.name) +
                    " is no name for a manifest (letters, digits and _.-$+)");
      continue;
    }
    if (!names.insert(in_lower_case(manifest.name)).second) {
      name.complain(in_quotes(manifest.name) +
                    " occurs twice, or differs from another manifest's name in case alone");
    }
    if (!description.manifests.empty() && manifest.name <= description.manifests.back().name) {
      name.complain("manifests are not sorted by name");
    }
    manifest.text.path = manifest_member_name(manifest.name);
    read_digest_and_size(item, kMaxManifestBytes, manifest.text.sha256, manifest.text.size_bytes);
    if (const DocumentNode signature = item.member("signature"); signature.present()) {
      manifest.signature =
          read_part(signature, signature_member_name(manifest.name), kMaxSignatureBytes);
    }
    description.manifests.push_back(std::move(manifest));
  }
}

void read_kernels(const DocumentNode& node, Description& description) {
  for (const DocumentNode& item : node.items()) {
    item.allow_only({"sha256", "size"});
    Kernel kernel;
    read_digest_and_size(item, kMaxKernelBytes, kernel.sha256, kernel.size_bytes);
    if (!description.kernels.empty() && kernel.sha256 <= description.kernels.back().sha256) {
      item.complain("kernels are not sorted by sha256, or one occurs twice");
    }
    description.kernels.push_back(kernel);
  }
  if (description.kernels.empty()) node.complain("holds no kernel");
}

}  // namespace

std::uint64_t Description::kernel_bytes() const {
  std::uint64_t bytes = 0;
  for (const Kernel& kernel : kernels) bytes += kernel.size_bytes;
  return bytes;
}

std::string write_description(const Description& description) {
  std::string text = fmt::format(
      "{{\n\"schema\":\"{}\",\"schema_version\":{},\n\"name\":{},\n\"provenance\":{{\"tool\":{},"
      "\"packs\":{}}},\n\"manifests\":{}",
      kSchema, Description::kSchemaVersion, json_string(description.name),
      json_string(description.tool), list_json(description.packs, pack_json),
      list_json(description.manifests, manifest_json));
  if (description.license) text += ",\n\"license\":" + part_json(*description.license);
  if (description.notice) text += ",\n\"notice\":" + part_json(*description.notice);
  return text + fmt::format(",\n\"kernels\":{}\n}}\n", list_json(description.kernels, kernel_json));
}

Result<Description> parse_description(std::string_view text, std::string_view bundle) {
  const std::string file_name = fmt::format("{}: {}", bundle, kDescriptionName);
  const auto as_integrity = [](const Error& error) {
    return tl::unexpected<Error>(Error(StatusCode::kIntegrity, error.message()));
  };
  const auto document = Document::parse(text, file_name);
  if (!document) return as_integrity(document.error());
  const DocumentNode root = document->root();
  Description description;
  read_schema(root, kSchema, Description::kSchemaVersion);
  root.allow_only({"schema", "schema_version", "name", "provenance", "manifests", "license",
                   "notice", "kernels"});
  if (const DocumentNode at = root.required("name");
      at.read(description.name) && !is_manifest_name(description.name)) {
    at.complain(in_quotes(description.name) + " is no name (letters, digits and _.-$+)");
  }
  read_provenance(root.required("provenance"), description);
  read_manifests(root.required("manifests"), description);
  description.license = read_text_part(root.member("license"), kLicenseName);
  description.notice = read_text_part(root.member("notice"), kNoticeName);
  read_kernels(root.required("kernels"), description);
  if (const Status status = document->status(); !status) return as_integrity(status.error());
  return description;
}

}  // namespace cubist::bundle
