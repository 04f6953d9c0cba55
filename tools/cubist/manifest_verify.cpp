#include "manifest_verify.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "document/json_text.h"
#include "manifest_names.h"
#include "print_json.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVerifyHelp =
    R"(Says who signed a manifest. Ends with 0 if a trusted key did, or if it is a file of this
program's own package; with 4 if not, whatever the policy for unsigned manifests is.

The signature is FILE.minisig beside the manifest, made with:
  minisign -S -s KEY -m M.json

Examples:
  cubist manifest verify M.json
  cubist manifest verify M.json --trusted-key RWS6KxAteqeQ...
  cubist manifest verify flashinfer-0.6.13 --json
  cubist manifest verify old.json --trusted-key ./publisher.pub --accept-older-serial

The same flags, here on other commands:
  cubist list --manifest M.json --trusted-key ./publisher.pub --manifest-signatures refuse
  cubist fetch --manifest M.json --all --trusted-key ./publisher.pub --revocations revoked.json)";

struct Looked {
  NamedManifest named;
  runtime::TrustedManifest opened;
};

/// errors  kUntrusted: nobody who is trusted vouches for it
Result<Looked> look(const std::string& name) {
  Looked looked;
  CUBIST_ASSIGN_OR_RETURN(looked.named, find_manifest(name));
  CUBIST_ASSIGN_OR_RETURN(looked.opened, open_trusted_manifest(looked.named));
  if (looked.opened.signed_by || looked.opened.shipped) return looked;
  CUBIST_ASSIGN_OR_RETURN(const trust::Trust* trust, trust_of_user());
  if (!trust->checks_signatures()) {
    return fail(StatusCode::kUntrusted,
                "'{}': no key is trusted, so no signature can be checked; give --trusted-key, or "
                "set trusted_keys",
                looked.named.path);
  }
  return fail(StatusCode::kUntrusted, "'{}' is not signed: there is no '{}.minisig'",
              looked.named.path, looked.named.path);
}

Json to_json(const Looked& looked) {
  const Manifest& manifest = looked.opened.manifest;
  Json json = {{"name", manifest.name},
               {"path", looked.named.path},
               {"shipped", looked.opened.shipped},
               {"signed_by", nullptr}};
  if (looked.opened.signed_by) {
    json["signed_by"] = {{"key_id", looked.opened.signed_by->key.id.text()},
                         {"key", looked.opened.signed_by->key.text()},
                         {"trusted_comment", looked.opened.signed_by->trusted_comment}};
  }
  if (manifest.serial != 0) json["serial"] = manifest.serial;
  if (!manifest.expires.empty()) json["expires"] = manifest.expires;
  return json;
}

void print_text(const Looked& looked) {
  const Manifest& manifest = looked.opened.manifest;
  std::string text = looked.named.path + ": ";
  if (looked.opened.signed_by) {
    text += fmt::format("signed by {}, comment {}", looked.opened.signed_by->key.id.text(),
                        in_quotes(looked.opened.signed_by->trusted_comment));
  } else {
    text += "not signed; a file of this program's own package";
  }
  if (manifest.serial != 0) text += fmt::format(", serial {}", manifest.serial);
  if (!manifest.expires.empty()) text += fmt::format(", expires {}", manifest.expires);
  std::puts(text.c_str());
}

ExitCode run_verify(const std::vector<std::string>& names, const CommonOptions& common) {
  Status first;
  Json results = Json::array();
  for (const std::string& name : names) {
    const auto looked = look(name);
    if (looked) {
      results.push_back(to_json(*looked));
      if (!common.json) print_text(*looked);
      continue;
    }
    const Error& error = looked.error();
    if (first) first = tl::unexpected<Error>(error);
    results.push_back({{"manifest", name}, {"error", error_json(error)}});
    print_error(error);
  }
  if (common.json) print_json({{"manifests", std::move(results)}}, first);
  return first ? ExitCode::kOk : exit_code_for(first.error().code());
}

}  // namespace

void add_manifest_verify(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("verify", kVerifyHelp);
  const auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("manifests", *names, "Files, or shipped names")->required();
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, names] { context.exit_code = run_verify(*names, context.common); });
}

}  // namespace cubist::tools
