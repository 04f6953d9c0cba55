#include "bundle_inspect.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "bundle/bundle.h"
#include "bundle/verify_kernels.h"
#include "bundle_checks.h"
#include "document/json_text.h"
#include "fetch_support.h"
#include "interrupt.h"
#include "print_json.h"
#include "registry/source.h"
#include "registry/url.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Inspected {
  std::string file;
  std::uint64_t file_bytes = 0;
  std::uint64_t packed_bytes = 0;
  Sha256Digest identity;
  bundle::Description description;
  bool verified = false;                       ///< every byte was
  std::map<std::string, std::string> signers;  ///< manifest -> key; only where it was checked
};

/// Everything in the bundle against bundle.json, the user's keys and revocations.
Status verify(const bundle::Bundle& opened, unsigned threads, Inspected& inspected) {
  CUBIST_ASSIGN_OR_RETURN(bundle::Checks checks, checks_of_user(Incoming::kByOwnName));
  checks.signature = [&](const bundle::IncomingManifest& incoming) -> Status {
    CUBIST_ASSIGN_OR_RETURN(const auto signer, signer_of(incoming, Incoming::kByOwnName));
    if (signer) inspected.signers[incoming.part->name] = signer->key.id.text();
    return {};
  };
  CUBIST_ASSIGN_OR_RETURN(const auto manifests, bundle::check_manifests(opened, checks));
  const bundle::Description& description = opened.description();
  for (const auto& part : {description.license, description.notice}) {
    if (!part) continue;
    CUBIST_ASSIGN_OR_RETURN(const std::string text, opened.read_part(*part));
  }
  const InterruptGuard interrupt;
  CUBIST_RETURN_IF_ERROR(bundle::verify_kernels(opened, threads, interrupt.flag()));
  inspected.verified = true;
  return {};
}

Result<Inspected> inspect(const BundleInspectArguments& arguments) {
  const bool remote = looks_like_url(arguments.location);
  if (remote && arguments.offline) {
    return fail(StatusCode::kOffline, "'{}' needs the network, and --offline was given",
                shown_value(arguments.location));
  }
  std::unique_ptr<HttpClient> client;
  std::shared_ptr<RandomAccess> file;
  if (remote) {
    client = std::make_unique<HttpClient>();
    CUBIST_ASSIGN_OR_RETURN(file, open_location(arguments.location, *client));
  } else {
    CUBIST_ASSIGN_OR_RETURN(file, open_file_access(arguments.location));
  }
  CUBIST_ASSIGN_OR_RETURN(const auto opened, bundle::Bundle::open(std::move(file)));
  Inspected inspected;
  inspected.file = opened.file_name();
  inspected.file_bytes = opened.file_bytes();
  inspected.packed_bytes = opened.directory_offset() - opened.kernels_offset();
  inspected.identity = opened.identity();
  inspected.description = opened.description();
  // What is behind HTTP ranges is read by one thread at a time.
  const unsigned threads = remote ? 1 : std::max(1U, std::thread::hardware_concurrency());
  if (arguments.verify) CUBIST_RETURN_IF_ERROR(verify(opened, threads, inspected));
  return inspected;
}

/// What can be said of a manifest's signature.
std::string signature_word(const Inspected& inspected, const bundle::ManifestPart& manifest) {
  const auto signer = inspected.signers.find(manifest.name);
  if (signer != inspected.signers.end()) return "good, by key " + signer->second;
  return manifest.signature ? "there, not checked" : "none";
}

Json inspected_json(const Inspected& inspected) {
  const bundle::Description& description = inspected.description;
  Json manifests = Json::array();
  for (const bundle::ManifestPart& manifest : description.manifests) {
    Json item = {{"name", manifest.name},
                 {"sha256", manifest.text.sha256.hex()},
                 {"size", manifest.text.size_bytes},
                 {"signed", manifest.signature.has_value()},
                 {"signed_by", nullptr}};
    const auto signer = inspected.signers.find(manifest.name);
    if (signer != inspected.signers.end()) item["signed_by"] = signer->second;
    manifests.push_back(std::move(item));
  }
  Json packs = Json::array();
  for (const bundle::PackOrigin& pack : description.packs) {
    packs.push_back({{"name", pack.name},
                     {"version", pack.version},
                     {"license", pack.license},
                     {"sources", pack.sources}});
  }
  Json kernels = Json::array();
  for (const bundle::Kernel& kernel : description.kernels) {
    kernels.push_back({{"sha256", kernel.sha256.hex()}, {"size", kernel.size_bytes}});
  }
  return {{"file", inspected.file},
          {"size", inspected.file_bytes},
          {"name", description.name},
          {"identity", inspected.identity.hex()},
          {"tool", description.tool},
          {"verified", inspected.verified ? "everything" : "form"},
          {"kernel_bytes", description.kernel_bytes()},
          {"packed_bytes", inspected.packed_bytes},
          {"manifests", std::move(manifests)},
          {"packs", std::move(packs)},
          {"license", description.license.has_value()},
          {"notice", description.notice.has_value()},
          {"kernels", std::move(kernels)}};
}

void print_text(const Inspected& inspected) {
  const bundle::Description& description = inspected.description;
  std::printf("bundle %s, made by %s\n  identity  %s\n", description.name.c_str(),
              in_quotes(description.tool).c_str(), inspected.identity.hex().c_str());
  std::printf("  kernels   %zu, %s bytes (%s packed)\n", description.kernels.size(),
              with_commas(description.kernel_bytes()).c_str(),
              with_commas(inspected.packed_bytes).c_str());
  for (const bundle::ManifestPart& manifest : description.manifests) {
    std::printf("  manifest  %s, %s bytes, sha256 %s\n            signature: %s\n",
                manifest.name.c_str(), with_commas(manifest.text.size_bytes).c_str(),
                manifest.text.sha256.hex().c_str(), signature_word(inspected, manifest).c_str());
  }
  for (const bundle::PackOrigin& pack : description.packs) {
    std::vector<std::string> sources;
    for (const std::string& source : pack.sources) sources.push_back(in_quotes(source));
    std::printf("  pack      %s %s, licence %s, from %s\n", in_quotes(pack.name).c_str(),
                in_quotes(pack.version).c_str(), in_quotes(pack.license).c_str(),
                sources.empty() ? "nowhere named" : joined(sources).c_str());
  }
  std::printf("  %s\n", inspected.verified
                            ? "verified: every kernel, manifest, licence and notice was hashed"
                            : "not verified: this is what bundle.json says; the file's form fits "
                              "it, no kernel was hashed (--verify does)");
}

}  // namespace

ExitCode run_bundle_inspect(const BundleInspectArguments& arguments, const CommonOptions& common) {
  const auto inspected = inspect(arguments);
  if (!inspected) return report_error(common, inspected.error());
  if (common.json) {
    print_json(inspected_json(*inspected));
  } else {
    print_text(*inspected);
  }
  return ExitCode::kOk;
}

}  // namespace cubist::tools
