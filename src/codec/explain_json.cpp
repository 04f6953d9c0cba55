#include "codec/explain_json.h"

#include "codec/json_writer.h"
#include "model/enums.h"

namespace cubist {
namespace {

using selector::CandidateNote;
using selector::CtaGrid;
using selector::Difference;
using selector::ExplainStep;
using selector::NearKernel;
using selector::PackExplanation;
using selector::PassNote;

void append_steps(std::string_view name, const std::vector<ExplainStep>& steps, JsonWriter& json) {
  json.key(name).begin('[');
  for (const ExplainStep& step : steps) {
    json.begin('{').field("topic", step.topic).field("text", step.text).end('}');
  }
  json.end(']');
}

void append_grid(const CtaGrid& grid, JsonWriter& json) {
  json.field("num_ctas_q", grid.num_ctas_q);
  json.field("num_ctas_kv", grid.num_ctas_kv);
  json.field("num_ctas", grid.total());
  json.field("cluster", grid.cluster_x);
}

void append_candidate(const CandidateNote& candidate, JsonWriter& json) {
  json.begin('{');
  json.field("tile_q", candidate.record->traits.tile_q);
  json.field("kernel", candidate.record->name);
  append_grid(candidate.grid, json);
  json.field("waves", candidate.waves);
  json.field("modelled_time", candidate.time);
  json.field("chosen", candidate.chosen);
  json.end('}');
}

void append_ranked(const selector::RankedKernel& kernel, JsonWriter& json) {
  json.begin('{');
  json.field("tile_q", kernel.record->traits.tile_q);
  json.field("kernel", kernel.record->name);
  append_grid(kernel.grid, json);
  json.field("modelled_time", kernel.time);
  json.end('}');
}

void append_pass(const PassNote& pass, JsonWriter& json) {
  json.begin('{');
  json.field("kernel_type", to_string(pass.wanted.kernel_type));
  json.field("mask_type", to_string(pass.wanted.mask_type));
  json.field("tile_q", pass.wanted.tile_q);
  json.field("tile_kv", pass.wanted.tile_kv);
  json.field("page_size", pass.wanted.page_size);
  json.field("dynamic_page", pass.wanted.dynamic_page);
  json.field("head_dim_per_cta_v", pass.wanted.head_dim_per_cta_v);
  json.field("scheduler", to_string(pass.wanted.scheduler));
  json.field("multi_ctas_kv_mode", to_string(pass.wanted.multi_ctas_kv_mode));
  json.field("two_cta_mma", pass.wanted.two_cta_mma);
  json.key("candidates").begin('[');
  for (const CandidateNote& candidate : pass.candidates) append_candidate(candidate, json);
  json.end(']');
  json.key("kernel");
  if (pass.record == nullptr) {
    json.raw("null");
  } else {
    json.value(pass.record->name);
    append_grid(pass.grid, json);
  }
  json.end('}');
}

void append_near(const NearKernel& near, JsonWriter& json) {
  json.begin('{');
  json.field("kernel", near.record->name);
  json.field("sha256", near.record->sha256.hex());
  json.field("distance", near.distance);
  json.key("differences").begin('[');
  for (const Difference& difference : near.differences) {
    json.begin('{').field("field", difference.field);
    json.field("needed", difference.needed).field("found", difference.found);
    json.field("change", difference.advice).end('}');
  }
  json.end(']').end('}');
}

void append_pack(const PackExplanation& pack, JsonWriter& json) {
  json.begin('{');
  json.field("pack", pack.pack);
  json.field("revision", to_string(pack.revision));
  json.field("chose", pack.chose);
  append_steps("steps", pack.steps, json);
  json.key("passes").begin('[');
  for (const PassNote& pass : pack.passes) append_pass(pass, json);
  json.end(']');
  json.key("tiles").begin('[');
  for (const selector::RankedKernel& kernel : pack.tiles) append_ranked(kernel, json);
  json.end(']');
  json.key("nearest").begin('[');
  for (const NearKernel& near : pack.nearest) append_near(near, json);
  json.end(']').end('}');
}

}  // namespace

void append_explanation_json(const selector::Explanation& explanation, std::string& out) {
  JsonWriter json(out);
  json.begin('{');
  append_steps("request", explanation.request, json);
  json.key("packs").begin('[');
  for (const PackExplanation& pack : explanation.packs) append_pack(pack, json);
  json.end(']');
  json.key("runner_up");
  if (explanation.runner_up) {
    json.begin('{').field("kernel", explanation.runner_up->record->name);
    json.field("sha256", explanation.runner_up->record->sha256.hex());
    json.field("modelled_time", explanation.runner_up->time);
    json.field("chosen_modelled_time", explanation.chosen_time).end('}');
  } else {
    json.raw("null");
  }
  json.key("barred").begin('[');
  for (const selector::BarredNote& note : explanation.barred) {
    json.begin('{').field("kernel", note.record->name);
    json.field("sha256", note.record->sha256.hex()).field("reason", note.reason).end('}');
  }
  json.end(']').end('}');
}

}  // namespace cubist
