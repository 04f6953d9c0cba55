#include "oci/credentials.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "document/document.h"
#include "document/json_text.h"
#include "oci/base64.h"
#include "registry/subprocess.h"

namespace cubist::oci {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1ULL << 20;
constexpr std::chrono::seconds kHelperTimeout{30};
// Names under which docker knows its own registry.
constexpr std::string_view kTokenUser = "<token>";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void read_entry(const DocumentNode& node, Credentials& credentials) {
  std::string packed;
  node.member("username").read(credentials.user);
  node.member("password").read(credentials.password);
  node.member("identitytoken").read(credentials.identity_token);
  if (!node.member("auth").read(packed) || packed.empty()) return;
  const auto text = from_base64(packed);
  const std::size_t colon = text ? text->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    node.member("auth").complain("found what is not the base64 of user:password");
    return;
  }
  credentials.user = text->substr(0, colon);
  credentials.password = text->substr(colon + 1);
  // docker pads with NULs.
  while (credentials.password.ends_with('\0')) credentials.password.pop_back();
}

/// A syntax error quotes what is around it, which here may be a password.
Result<Document> parse_discreetly(std::string_view text, std::string_view name) {
  auto document = Document::parse(text, name);
  if (document) return document;
  const std::string& message = document.error().message();
  const std::size_t place = message.find("at line ");
  const std::size_t end = message.find(':', std::min(place, message.size()));
  return fail(
      StatusCode::kInvalidArgument, "{}: not a JSON text{}", name,
      place == std::string::npos ? std::string() : ": wrong " + message.substr(place, end - place));
}

/// "https://index.docker.io/v1/" -> "index.docker.io"
std::string_view host_of_key(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme))
      return key.substr(scheme.size(), key.find('/', scheme.size()) - scheme.size());
  }
  return key;
}

bool is_helper_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), fits);
}

Result<Credentials> ask_helper(const std::string& name, const Reference& reference,
                               const std::string& file) {
  if (!is_helper_name(name)) {
    return fail(StatusCode::kInvalidArgument, "{}: the credential helper {} has no usable name",
                file, in_quotes(name));
  }
  const std::string program = "docker-credential-" + name;
  auto ran = run_process({program, "get"}, kHelperTimeout, reference.host);
  if (!ran && ran.error().code() == StatusCode::kNotFound) {
    return fail(StatusCode::kIo,
                "'{}' names the credential helper {} for {}, but there is no program '{}' on PATH: "
                "install it, take that helper out of the file, or name a file with user and "
                "password in REGISTRY_AUTH_FILE",
                file, in_quotes(name), reference.host, program);
  }
  if (!ran) return forward_error(ran, fmt::format("{}: the credential helper {}", file, program));
  if (ran->exit_code != 0) {
    if (ran->out.find("credentials not found") != std::string::npos) return Credentials();
    return fail(StatusCode::kIo, "{}: {} get ended with {}; run it by hand with {} as its input",
                file, program, ran->exit_code, reference.host);
  }
  return parse_helper_answer(ran->out, program);
}

Result<Credentials> credentials_in(const std::string& path, const Reference& reference) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxFileBytes));
  CUBIST_ASSIGN_OR_RETURN(const CredentialFile file, parse_credential_file(text, path));
  if (const auto helper = file.helpers.find(reference.host); helper != file.helpers.end()) {
    return ask_helper(helper->second, reference, path);
  }
  if (const Credentials* entry = find_entry(file, reference); entry != nullptr && !entry->empty()) {
    Credentials found = *entry;
    found.origin = path;
    return found;
  }
  if (!file.store.empty()) return ask_helper(file.store, reference, path);
  return Credentials();
}

std::vector<std::string> usual_files() {
  const std::string home = environment("HOME");
  const auto below = [](const std::string& folder, std::string_view file) {
    return folder.empty() ? std::string() : fmt::format("{}/{}", folder, file);
  };
  std::string config = environment("XDG_CONFIG_HOME");
  if (config.empty()) config = below(home, ".config");
  std::string docker = environment("DOCKER_CONFIG");
  if (docker.empty()) docker = below(home, ".docker");
  return {below(environment("XDG_RUNTIME_DIR"), "containers/auth.json"),
          below(config, "containers/auth.json"), below(docker, "config.json")};
}

}  // namespace

Result<CredentialFile> parse_credential_file(std::string_view text, std::string_view file_name) {
  const std::string name(file_name);
  CUBIST_ASSIGN_OR_RETURN(const Document document, parse_discreetly(text, name));
  CredentialFile file;
  const DocumentNode root = document.root();
  if (!root.is_object()) {
    return fail(StatusCode::kInvalidArgument, "{}: not a JSON object", name);
  }
  const DocumentNode auths = root.member("auths");
  for (const std::string& key : auths.keys()) read_entry(auths.member(key), file.auths[key]);
  const DocumentNode helpers = root.member("credHelpers");
  for (const std::string& key : helpers.keys()) helpers.member(key).read(file.helpers[key]);
  root.member("credsStore").read(file.store);
  CUBIST_RETURN_IF_ERROR(document.status());
  return file;
}

const Credentials* find_entry(const CredentialFile& file, const Reference& reference) {
  std::string key = reference.host + "/" + reference.repository;
  for (;;) {
    if (const auto found = file.auths.find(key); found != file.auths.end()) return &found->second;
    if (key.size() <= reference.host.size()) break;
    key.resize(key.rfind('/'));
  }
  for (const auto& [name, entry] : file.auths) {
    if (host_of_key(name) == reference.host) return &entry;
  }
  return nullptr;
}

Result<Credentials> parse_helper_answer(std::string_view text, std::string_view helper) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, parse_discreetly(text, helper));
  Credentials found;
  std::string secret;
  document.root().required("Username").read(found.user);
  document.root().required("Secret").read(secret);
  CUBIST_RETURN_IF_ERROR(document.status());
  (found.user == kTokenUser ? found.identity_token : found.password) = secret;
  found.origin = std::string(helper);
  return found;
}

Result<Credentials> find_credentials(const Reference& reference) {
  if (const std::string named = environment("REGISTRY_AUTH_FILE"); !named.empty()) {
    auto found = credentials_in(named, reference);
    if (!found) return forward_error(found, "REGISTRY_AUTH_FILE");
    return found;
  }
  for (const std::string& path : usual_files()) {
    if (path.empty()) continue;
    auto found = credentials_in(path, reference);
    if (!found && found.error().code() == StatusCode::kNotFound) continue;
    if (!found || !found->empty()) return found;
  }
  return Credentials();
}

}  // namespace cubist::oci
