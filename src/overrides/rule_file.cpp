#include "overrides/rule_file.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "document/json_text.h"
#include "overrides/decode_model.h"

// { "schema": "cubist.overrides", "schema_version": 1,
//   "bar":   [ { "sha256", "reason" } ],
//   "rules": [ { "name", "reason", "when": { problem fields }, "force": { kernel traits },
//                "forbid": { kernel traits } } ],
//   "decode_model": { decode_model.h; schema_version 2 } }

namespace cubist::overrides {
namespace {

constexpr std::uint64_t kMaxRuleBytes = 4ULL << 20;

Bar read_bar(const DocumentNode& node) {
  Bar bar;
  node.allow_only({"sha256", "reason"});
  std::string hex;
  if (node.required("sha256").read(hex)) {
    if (const auto digest = Sha256Digest::parse(hex)) {
      bar.sha256 = *digest;
    } else {
      node.member("sha256").complain(
          fmt::format("{} is no sha256 of 64 hexadecimal digits", in_quotes(hex)));
    }
  }
  if (node.required("reason").read(bar.reason) && bar.reason.empty()) {
    node.member("reason").complain("is empty; explain shows why a kernel is barred");
  }
  return bar;
}

Rule read_rule(const DocumentNode& node) {
  Rule rule;
  node.allow_only({"name", "reason", "when", "force", "forbid"});
  if (node.required("name").read(rule.name) && rule.name.empty()) {
    node.member("name").complain("is empty; explain shows rules by name");
  }
  node.member("reason").read(rule.reason);
  rule.when = read_conditions(node.member("when"));
  const DocumentNode force = node.member("force");
  const DocumentNode forbid = node.member("forbid");
  if (force.present()) rule.force = KernelFilter::read(force);
  if (forbid.present()) rule.forbid = KernelFilter::read(forbid);
  if (!force.present() && !forbid.present()) {
    node.complain("the rule does nothing; give force, forbid or both");
  }
  return rule;
}

}  // namespace

bool Rule::applies(const ProblemAndDevice& value) const {
  return std::all_of(when.begin(), when.end(),
                     [&](const ProblemCondition& condition) { return condition.holds(value); });
}

Result<RuleFile> parse_rules(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  root.allow_only({"schema", "schema_version", "bar", "rules", "decode_model"});
  std::string schema;
  if (root.required("schema").read(schema) && schema != "cubist.overrides") {
    root.member("schema").complain(
        fmt::format("is {}; a rule file says cubist.overrides", in_quotes(schema)));
  }
  std::int32_t version = 0;
  root.required("schema_version").read_integer(version, 1, 2);
  RuleFile file;
  file.file = file_name;
  std::set<Sha256Digest> barred;
  for (const DocumentNode& item : root.member("bar").items()) {
    file.bars.push_back(read_bar(item));
    if (!barred.insert(file.bars.back().sha256).second) {
      item.member("sha256").complain("another bar has this sha256");
    }
  }
  std::set<std::string> names;
  for (const DocumentNode& item : root.member("rules").items()) {
    file.rules.push_back(read_rule(item));
    if (!names.insert(file.rules.back().name).second) {
      item.member("name").complain("another rule has this name");
    }
  }
  if (const DocumentNode model = root.member("decode_model"); model.present()) {
    if (version < 2) model.complain("schema_version 1 has no such key; 2 has it");
    file.decode_model = read_decode_model(model, file.file);
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  if (file.bars.empty() && file.rules.empty() && !file.decode_model) {
    return fail(StatusCode::kInvalidArgument,
                "{}: neither bar nor rules nor decode_model: the file does nothing", file_name);
  }
  return file;
}

Result<RuleFile> load_rules(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxRuleBytes));
  return parse_rules(text, path);
}

}  // namespace cubist::overrides
