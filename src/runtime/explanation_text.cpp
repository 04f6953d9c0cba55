#include "runtime/explanation_text.h"

#include <iterator>

#include <fmt/format.h>

namespace cubist::runtime {
namespace {

void append_steps(const std::vector<selector::ExplainStep>& steps, std::string& out) {
  for (const selector::ExplainStep& step : steps) {
    fmt::format_to(std::back_inserter(out), "  {}: {}\n", step.topic, step.text);
  }
}

}  // namespace

std::string explanation_text(const selector::Explanation& explanation) {
  std::string out = "problem\n";
  auto put = std::back_inserter(out);
  append_steps(explanation.request, out);
  for (const selector::PackExplanation& pack : explanation.packs) {
    fmt::format_to(put, "pack {} ({}){}\n", pack.pack, to_string(pack.revision),
                   pack.chose ? ", which chose" : "");
    append_steps(pack.steps, out);
  }
  for (const selector::BarredNote& barred : explanation.barred) {
    fmt::format_to(put, "barred {}: {}\n", barred.record->name, barred.reason);
  }
  if (explanation.selection) {
    fmt::format_to(put, "chosen {}\n", explanation.selection->best().record->name);
  }
  if (explanation.runner_up) {
    fmt::format_to(put, "runner-up {}\n", explanation.runner_up->record->name);
  }
  if (explanation.refusal) fmt::format_to(put, "refused: {}\n", explanation.refusal->message());
  return out;
}

}  // namespace cubist::runtime
