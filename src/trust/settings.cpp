#include "trust/settings.h"

#include "base/environment.h"
#include "base/secrets.h"
#include "document/json_text.h"

namespace cubist::trust {
namespace {

Result<std::optional<Policy>> policy_from(const char* name) {
  const std::string value = environment(name);
  if (value.empty()) return std::optional<Policy>();
  const std::optional<Policy> policy = parse_policy(value);
  if (policy) return policy;
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be allow, warn or refuse",
              environment_origin(name), in_quotes(shown_value(value)));
}

void note_origin(const char* name, std::string& origin) {
  if (!environment(name).empty()) origin = environment_origin(name);
}

}  // namespace

Result<Settings> settings_from_environment() {
  Settings settings;
  settings.trusted_keys = environment_list("CUBIST_TRUSTED_KEYS", kWhiteSpace);
  settings.key_statements = environment_list("CUBIST_KEY_STATEMENTS", ":");
  settings.revocations = environment_list("CUBIST_REVOCATIONS", ":");
  CUBIST_ASSIGN_OR_RETURN(settings.manifest_signatures, policy_from("CUBIST_MANIFEST_SIGNATURES"));
  CUBIST_ASSIGN_OR_RETURN(const auto foreign_store, policy_from("CUBIST_FOREIGN_STORE"));
  if (foreign_store) settings.foreign_store = *foreign_store;
  Origins& origins = settings.origins;
  note_origin("CUBIST_TRUSTED_KEYS", origins.trusted_keys);
  note_origin("CUBIST_MANIFEST_SIGNATURES", origins.manifest_signatures);
  note_origin("CUBIST_KEY_STATEMENTS", origins.key_statements);
  note_origin("CUBIST_REVOCATIONS", origins.revocations);
  note_origin("CUBIST_FOREIGN_STORE", origins.foreign_store);
  return settings;
}

}  // namespace cubist::trust
