#include "trust/settings.h"

#include <cstdlib>
#include <string_view>

#include "document/json_text.h"

namespace cubist::trust {
namespace {

std::vector<std::string> list_from(const char* name, std::string_view separators) {
  const char* value = std::getenv(name);
  const std::string_view text = value == nullptr ? "" : value;
  std::vector<std::string> list;
  for (std::size_t begin = text.find_first_not_of(separators); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    list.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(separators, end);
  }
  return list;
}

Result<std::optional<Policy>> policy_from(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::optional<Policy>();
  const std::optional<Policy> policy = parse_policy(value);
  if (policy) return policy;
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be allow, warn or refuse", name,
              in_quotes(value));
}

}  // namespace

Result<Settings> settings_from_environment() {
  Settings settings;
  settings.trusted_keys = list_from("CUBIST_TRUSTED_KEYS", " \t\r\n\v\f");
  settings.key_statements = list_from("CUBIST_KEY_STATEMENTS", ":");
  settings.revocations = list_from("CUBIST_REVOCATIONS", ":");
  CUBIST_ASSIGN_OR_RETURN(settings.manifest_signatures, policy_from("CUBIST_MANIFEST_SIGNATURES"));
  CUBIST_ASSIGN_OR_RETURN(const auto foreign_store, policy_from("CUBIST_FOREIGN_STORE"));
  if (foreign_store) settings.foreign_store = *foreign_store;
  return settings;
}

}  // namespace cubist::trust
