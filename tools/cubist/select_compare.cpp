#include "select_compare.h"

#include <memory>
#include <vector>

#include "codec/json_writer.h"
#include "codec/problem_json.h"
#include "document/json_text.h"
#include "manifest_side.h"
#include "workingset/compare.h"

namespace cubist::tools {
namespace {

using workingset::Change;
using workingset::ChangeKind;
using workingset::Comparison;

constexpr ChangeKind kKinds[] = {ChangeKind::kSame, ChangeKind::kRebuilt, ChangeKind::kChanged,
                                 ChangeKind::kAppears, ChangeKind::kVanishes};

std::string name_of(const KernelRecord* record) {
  return std::string(record == nullptr ? "no kernel" : record->name.view());
}

std::string change_text(const Change& change) {
  std::string out = fmt::format("  {:<9} {:>12.0f}  ", to_string(change.kind), change.num_problems);
  const std::string before = name_of(change.before);
  const std::string after = name_of(change.after);
  out += before == after ? before : before + "\n                          -> " + after;
  if (!change.differences.empty()) {
    out += fmt::format("\n                          {}", joined(change.differences));
  }
  const AttentionProblem& p = change.example;
  return out + fmt::format(
                   "\n                          for example batch {}, max_q_len {}, "
                   "max_kv_len {}\n",
                   p.batch, p.max_q_len, p.max_kv_len);
}

std::string as_text(const Comparison& comparison) {
  std::string out;
  std::string label;
  for (const Change& change : comparison.changes) {
    if (change.kind == ChangeKind::kSame || change.kind == ChangeKind::kRebuilt) continue;
    if (change.label != label) {
      label = change.label;
      out += label + "\n";
    }
    out += change_text(change);
  }
  out += fmt::format("{:.0f} problems:", comparison.num_problems);
  const char* separator = " ";
  for (const ChangeKind kind : kKinds) {
    out += fmt::format("{}{:.0f} {}", separator, comparison.count(kind), to_string(kind));
    separator = ", ";
  }
  return out + fmt::format(", {:.0f} without a kernel on either side\n", comparison.num_refused);
}

void put_kernel(std::string_view key, const KernelRecord* record, JsonWriter& json) {
  json.key(key);
  if (record == nullptr) {
    json.raw("null");
    return;
  }
  json.begin('{').field("name", record->name).field("sha256", record->sha256.hex()).end('}');
}

void put_change(const Change& change, const DeviceProfile& device, JsonWriter& json) {
  json.begin('{').field("kind", to_string(change.kind)).field("class", change.label);
  json.field("problems", static_cast<std::int64_t>(change.num_problems));
  put_kernel("before", change.before, json);
  put_kernel("after", change.after, json);
  json.list("differences", change.differences);
  std::string example;
  append_problem_json(change.example, device, example);
  json.key("example").raw(example).end('}');
}

std::string as_json(const Comparison& comparison, const ManifestSide& before,
                    const ManifestSide& after, const DeviceProfile& device) {
  std::string out;
  JsonWriter json(out);
  json.begin('{').field("before", before.manifest.name).field("after", after.manifest.name);
  json.field("problems", static_cast<std::int64_t>(comparison.num_problems));
  for (const ChangeKind kind : kKinds) {
    json.field(to_string(kind), static_cast<std::int64_t>(comparison.count(kind)));
  }
  json.field("refused", static_cast<std::int64_t>(comparison.num_refused));
  json.field("boxes", comparison.boxes).key("changes").begin('[');
  for (const Change& change : comparison.changes) put_change(change, device, json);
  json.end(']').end('}');
  return out + "\n";
}

}  // namespace

Result<std::string> run_compare(const CompareArguments& arguments, bool json) {
  CUBIST_ASSIGN_OR_RETURN(const auto before, open_side(arguments.before));
  CUBIST_ASSIGN_OR_RETURN(const auto after, open_side(arguments.after));
  const auto read_query = [&](const ManifestSide& side) -> Result<workingset::Query> {
    const std::string& device = side.device.empty() ? arguments.device : side.device;
    const DeploymentFlags flags =
        DeploymentFlags::from(arguments.model, device, arguments.strict, arguments.texts);
    CUBIST_ASSIGN_OR_RETURN(Deployment deployment, flags.read());
    return std::move(deployment.query);
  };
  workingset::Side first{&before->table, {}};
  workingset::Side second{&after->table, {}};
  CUBIST_ASSIGN_OR_RETURN(first.query, read_query(*before));
  CUBIST_ASSIGN_OR_RETURN(second.query, read_query(*after));
  CUBIST_ASSIGN_OR_RETURN(const Comparison comparison, workingset::compare(first, second));
  return json ? as_json(comparison, *before, *after, first.query.device) : as_text(comparison);
}

}  // namespace cubist::tools
