#include "workingset/set_file.h"

#include <cmath>
#include <set>

#include "base/file.h"
#include "codec/json_writer.h"
#include "codec/plan_json.h"
#include "codec/problem_json.h"
#include "document/document.h"
#include "document/json_text.h"

// { "schema": "cubist.working_set", "schema_version": 1,
//   "manifests": [ names ],
//   "query": { "model", "device", "sm", "num_sms", "classes": [..], "batch": "1..256", "max_q_len",
//              "max_kv_len", "strict", "overrides", "problems" },
//   "totals": { "kernels", "size", "all_kernels", "all_size", "boxes" },
//   "kernels": [ { "name", "pack", "sha256", "size", "fallback", "class",
//                  "witness": { a problem }, "max_active_clusters": { "8": 0 } } ],
//   "gaps": [ { "class", "problems", "message", "example": { a problem } } ] }

namespace cubist::workingset {
namespace {

std::string problem_text(const Witness& witness, const Query& query) {
  DeviceProfile device;
  device.sm = query.device.sm;
  device.num_sms = query.device.num_sms;
  std::string text;
  append_problem_json(witness.problem, device, text);
  return text;
}

void put_clusters(const Witness& witness, JsonWriter& json) {
  json.key("max_active_clusters").begin('{');
  for (std::size_t size = 2; size < witness.max_active_clusters.size(); ++size) {
    const std::int32_t answer = witness.max_active_clusters[size];
    if (answer >= 0) json.field(std::to_string(size), answer);
  }
  json.end('}');
}

std::string query_text(const Query& query, const SetInfo& info) {
  std::string out;
  JsonWriter json(out);
  json.begin('{');
  json.field("model", info.model).field("device", info.device);
  json.field("sm", query.device.sm).field("num_sms", query.device.num_sms);
  json.key("classes").begin('[');
  for (const ProblemClass& cls : query.classes) json.value(cls.label);
  json.end(']');
  json.field("batch", to_string(query.batch)).field("max_q_len", to_string(query.max_q_len));
  json.field("max_kv_len", to_string(query.max_kv_len)).field("strict", query.strict);
  json.field("overrides", info.overrides);
  json.field("problems", static_cast<std::int64_t>(std::min(query.num_problems(), 9e18)));
  json.end('}');
  return out;
}

std::string totals_text(const WorkingSet& set, const SetInfo& info) {
  std::string out;
  JsonWriter json(out);
  json.begin('{');
  json.field("kernels", set.members.size()).field("size", set.size_bytes());
  json.field("all_kernels", info.all_kernels).field("all_size", info.all_bytes);
  json.field("boxes", set.boxes).end('}');
  return out;
}

std::string member_text(const Member& member, const Query& query) {
  std::string out;
  JsonWriter json(out);
  json.begin('{');
  json.field("name", member.record->name).field("pack", member.pack);
  json.field("sha256", member.record->sha256.hex()).field("size", member.record->size_bytes);
  json.key("fallback");
  if (member.fallback == FallbackReason::kNone) {
    json.raw("null");
  } else {
    json.value(to_string(member.fallback));
  }
  json.field("class", member.witness.label);
  json.key("witness").raw(problem_text(member.witness, query));
  put_clusters(member.witness, json);
  json.end('}');
  return out;
}

std::string gap_text(const Gap& gap, const Query& query) {
  std::string out;
  JsonWriter json(out);
  json.begin('{');
  json.field("class", gap.example.label);
  json.field("problems", static_cast<std::int64_t>(std::min(gap.num_problems, 9e18)));
  json.field("message", gap.message).key("example").raw(problem_text(gap.example, query));
  json.end('}');
  return out;
}

template <class Items, class Text>
void put_lines(std::string_view key, const Items& items, Text text_of, std::string& out) {
  out += fmt::format("\"{}\": [", key);
  const char* separator = "\n";
  for (const auto& item : items) {
    out += separator + text_of(item);
    separator = ",\n";
  }
  out += items.empty() ? "]" : "\n]";
}

SetEntry read_entry(const DocumentNode& node) {
  SetEntry entry;
  node.required("name").read(entry.name);
  node.required("pack").read(entry.pack);
  std::int64_t size = 0;
  if (node.required("size").read_integer(size, 1, std::int64_t{1} << 40)) {
    entry.size_bytes = static_cast<std::uint64_t>(size);
  }
  std::string hex;
  if (node.required("sha256").read(hex)) {
    if (const auto digest = Sha256Digest::parse(hex)) {
      entry.sha256 = *digest;
    } else {
      node.member("sha256").complain(
          fmt::format("{} is no sha256 of 64 hexadecimal digits", in_quotes(hex)));
    }
  }
  return entry;
}

}  // namespace

std::string write_set(const WorkingSet& set, const Query& query, const SetInfo& info) {
  std::string manifests;
  for (const std::string& name : info.manifests) {
    manifests += (manifests.empty() ? "" : ", ") + json_string(name);
  }
  std::string out =
      "{\n\"schema\": \"cubist.working_set\",\n\"schema_version\": 1,\n\"manifests\": [" +
      manifests + "],\n\"query\": " + query_text(query, info) +
      ",\n\"totals\": " + totals_text(set, info) + ",\n";
  put_lines(
      "kernels", set.members, [&](const Member& m) { return member_text(m, query); }, out);
  out += ",\n";
  put_lines(
      "gaps", set.gaps, [&](const Gap& g) { return gap_text(g, query); }, out);
  return out + "\n}\n";
}

Result<SetFile> parse_set(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  std::string schema;
  if (root.required("schema").read(schema) && schema != "cubist.working_set") {
    root.member("schema").complain(fmt::format(
        "is {}; a file of 'cubist working-set -o' says cubist.working_set", in_quotes(schema)));
  }
  std::int32_t version = 0;
  root.required("schema_version").read_integer(version, 1, 1);
  SetFile file;
  root.member("manifests").read_strings(file.manifests);
  std::set<Sha256Digest> seen;
  for (const DocumentNode& item : root.required("kernels").items()) {
    SetEntry entry = read_entry(item);
    if (!seen.insert(entry.sha256).second) {
      item.member("sha256").complain("the same kernel is listed twice");
    }
    file.kernels.push_back(std::move(entry));
  }
  CUBIST_RETURN_IF_ERROR(document.status());
  return file;
}

Result<SetFile> load_set(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, 64ULL << 20));
  return parse_set(text, path);
}

}  // namespace cubist::workingset
