#include "workingset/classes.h"

#include <algorithm>

namespace cubist::workingset {
namespace {

struct Types {
  Dtype q, kv, o;
};

bool is_16_bit(Dtype dtype) { return dtype == Dtype::kBf16 || dtype == Dtype::kFp16; }

std::vector<Types> all_types(const ClassOptions& options) {
  std::vector<Types> types;
  for (const Dtype q : options.dtype_q) {
    const std::vector<Dtype> kvs = options.dtype_kv.empty() ? std::vector{q} : options.dtype_kv;
    const std::vector<Dtype> os =
        options.dtype_o.empty() ? std::vector{is_16_bit(q) ? q : Dtype::kBf16} : options.dtype_o;
    for (const Dtype kv : kvs) {
      for (const Dtype o : os) types.push_back({q, kv, o});
    }
  }
  return types;
}

Status check_options(const ClassOptions& options) {
  const auto empty = [](std::string_view field) {
    return fail(StatusCode::kInvalidArgument, "{} is empty; give at least one value", field);
  };
  if (options.phases.empty()) return empty("phase");
  if (options.tensor_parallel.empty()) return empty("tp");
  if (options.dtype_q.empty()) return empty("dtype_q");
  if (options.page_size.empty()) return empty("page_size");
  return {};
}

/// Whether two classes ask the same of selection, whatever they are called.
bool same_problem(const AttentionProblem& a, const AttentionProblem& b) {
  AttentionProblem other = b;
  other.sinks = a.sinks;  // selection does not look at them
  return a == other;
}

void add(ProblemClass cls, std::vector<ProblemClass>& classes) {
  for (const ProblemClass& known : classes) {
    if (same_problem(known.problem, cls.problem)) return;
  }
  classes.push_back(std::move(cls));
}

void add_types_and_pages(const ClassOptions& options, const AttentionProblem& shape,
                         const std::string& label, std::vector<ProblemClass>& classes) {
  for (const Types& types : all_types(options)) {
    for (const std::int32_t page_size : options.page_size) {
      ProblemClass cls;
      cls.problem = shape;
      cls.problem.dtype_q = types.q;
      cls.problem.dtype_k = cls.problem.dtype_v = types.kv;
      cls.problem.dtype_o = types.o;
      cls.problem.page_size = page_size;
      cls.label = fmt::format("{}, {}, {}/{}/{}", label, to_string(shape.phase), to_string(types.q),
                              to_string(types.kv), to_string(types.o));
      if (shape.phase != Phase::kRagged) cls.label += fmt::format(", page {}", page_size);
      add(std::move(cls), classes);
    }
  }
}

}  // namespace

Result<std::vector<ProblemClass>> make_classes(const presets::ModelPreset& model,
                                               const ClassOptions& options) {
  CUBIST_RETURN_IF_ERROR(check_options(options));
  std::vector<ProblemClass> classes;
  for (const presets::AttentionPreset& attention : model.attention) {
    for (const Phase phase : options.phases) {
      if (!attention.serves(phase)) continue;
      for (const std::int32_t tp : options.tensor_parallel) {
        AttentionProblem shape = options.rest;
        shape.phase = phase;
        if (Status applied = presets::apply_attention(attention, tp, shape); !applied) {
          return forward_error(applied, "model " + model.name);
        }
        std::string label = model.name + " " + attention.name;
        if (tp > 1) label += fmt::format(" tp {}", tp);
        add_types_and_pages(options, shape, label, classes);
      }
    }
  }
  if (classes.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "model {} has no layers for the phases given; 'cubist presets {}' shows which it "
                "has",
                model.name, model.name);
  }
  return classes;
}

Result<std::vector<ProblemClass>> make_classes(const ClassOptions& options) {
  CUBIST_RETURN_IF_ERROR(check_options(options));
  std::vector<ProblemClass> classes;
  for (const Phase phase : options.phases) {
    AttentionProblem shape = options.rest;
    shape.phase = phase;
    const std::int32_t vo = shape.head_dim_vo == -1 ? shape.head_dim_qk : shape.head_dim_vo;
    add_types_and_pages(options, shape,
                        fmt::format("{} q heads, {} kv heads, head_dim {}/{}", shape.num_q_heads,
                                    shape.num_kv_heads, shape.head_dim_qk, vo),
                        classes);
  }
  return classes;
}

}  // namespace cubist::workingset
