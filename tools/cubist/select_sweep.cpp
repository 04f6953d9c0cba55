#include "select_sweep.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
#include "codec/json_writer.h"
#include "codec/plan_json.h"
#include "print_json.h"

namespace cubist::tools {
namespace {

constexpr std::uint64_t kMaxProblems = 10'000'000;

/// One flag with more than one value.
struct Axis {
  const ProblemField* field = nullptr;
  std::vector<std::string> values;  // of a list, or of a range as an outer axis
  bool is_range = false;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 0;  // 0: doubling (outer), 1 (inner)
};

bool holds_list(const ProblemField& field) {
  return field.name == "sage_blocks" || field.name == "gpcs";
}

tl::unexpected<Error> bad_range(const ProblemField& field, std::string_view text) {
  return fail(
      StatusCode::kInvalidArgument,
      "{} is '{}'; expected FIRST..LAST with FIRST <= LAST, perhaps :STEP, in whole numbers (k "
      "= 1,024)",
      field.name, text);
}

bool parse_bound(std::string_view text, std::int64_t& value) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 50;  // doubling must not overflow
  const auto count = parse_count(text);
  if (!count || *count > kLimit || *count < -kLimit) return false;
  value = *count;
  return true;
}

void fill_outer_values(Axis& axis) {
  std::int64_t value = axis.first;
  while (value < axis.last) {
    axis.values.push_back(std::to_string(value));
    value = axis.step > 0 ? value + axis.step : std::max(value * 2, value + 1);
  }
  axis.values.push_back(std::to_string(axis.step > 0 ? std::min(value, axis.last) : axis.last));
  if (axis.step > 0 && value > axis.last) axis.values.pop_back();
}

Result<Axis> parse_axis(const ProblemField& field, std::string_view text) {
  Axis axis;
  axis.field = &field;
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    std::string_view last = text.substr(dots + 2);
    if (const std::size_t colon = last.find(':'); colon != std::string_view::npos) {
      if (!parse_bound(last.substr(colon + 1), axis.step) || axis.step < 1) {
        return bad_range(field, text);
      }
      last = last.substr(0, colon);
    }
    axis.is_range = true;
    if (dots == 0) {
      axis.first = 1;
    } else if (!parse_bound(text.substr(0, dots), axis.first)) {
      return bad_range(field, text);
    }
    if (!parse_bound(last, axis.last) || axis.last < axis.first) return bad_range(field, text);
    return axis;
  }
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = holds_list(field) ? std::string_view::npos : rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    std::int64_t number = 0;
    const bool scaled =
        !item.empty() && (item.back() == 'k' || item.back() == 'K') && parse_bound(item, number);
    axis.values.push_back(scaled ? std::to_string(number) : std::string(item));
    if (comma == std::string_view::npos) return axis;
    rest.remove_prefix(comma + 1);
  }
}

/// What two neighbouring problems must share to be one stretch.
struct Outcome {
  const KernelRecord* record = nullptr;
  FallbackReason fallback = FallbackReason::kNone;
  StatusCode code = StatusCode::kOk;
  bool operator==(const Outcome&) const = default;
};

std::string describe_kernel(const LaunchPlan& plan) {
  const KernelTraits& traits = plan.record->traits;
  return fmt::format("tile_q {}, {}, {}, {}", traits.tile_q, to_string(traits.kernel_type),
                     to_string(traits.scheduler), to_string(traits.multi_ctas_kv_mode));
}

class Sweep {
 public:
  Sweep(const RuledSelection& ruled, const selector::SelectOptions& options)
      : ruled_(ruled), options_(options) {}

  Result<SweepResult> run(const ProblemFlags& flags) {
    CUBIST_ASSIGN_OR_RETURN(base_.device, flags.device());
    for (const ProblemFlags::Given& flag : flags.given()) {
      CUBIST_ASSIGN_OR_RETURN(Axis axis, parse_axis(*flag.field, flag.text));
      axes_.push_back(std::move(axis));
    }
    CUBIST_RETURN_IF_ERROR(choose_inner());
    CUBIST_RETURN_IF_ERROR(check_size());
    std::vector<ProblemFlags::Given> point;
    CUBIST_RETURN_IF_ERROR(walk(0, point));
    return std::move(result_);
  }

 private:
  Status choose_inner() {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (!axes_[i].is_range) continue;
      if (inner_ == kNoAxis || axes_[inner_].field->name != "max_kv_len") inner_ = i;
    }
    if (inner_ == kNoAxis) {
      return fail(
          StatusCode::kInvalidArgument,
          "--sweep needs a range in at least one flag, for example --max-kv-len 1k..128k or "
          "--batch 1..256");
    }
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (i == inner_) continue;
      if (axes_[i].is_range) fill_outer_values(axes_[i]);
      if (axes_[i].values.size() > 1) result_.outer_fields.emplace_back(axes_[i].field->name);
    }
    result_.inner_field = axes_[inner_].field->name;
    return {};
  }

  Status check_size() const {
    const Axis& inner = axes_[inner_];
    const std::int64_t step = std::max<std::int64_t>(inner.step, 1);
    auto problems = static_cast<std::uint64_t>((inner.last - inner.first) / step) + 1;
    for (std::size_t i = 0; i < axes_.size() && problems <= kMaxProblems; ++i) {
      if (i != inner_) problems *= axes_[i].values.size();
    }
    if (problems <= kMaxProblems) return {};
    return fail(StatusCode::kInvalidArgument,
                "the sweep has more than {} problems; narrow a range or give it a step "
                "({} FIRST..LAST:STEP)",
                kMaxProblems, inner.field->name);
  }

  Status walk(std::size_t at, std::vector<ProblemFlags::Given>& point) {
    if (at == axes_.size()) return walk_inner(point);
    if (at == inner_) return walk(at + 1, point);
    const Axis& axis = axes_[at];
    const bool shown = axis.values.size() > 1;
    for (const std::string& value : axis.values) {
      point.push_back({axis.field, value});
      if (shown) outer_.push_back(value);
      CUBIST_RETURN_IF_ERROR(walk(at + 1, point));
      if (shown) outer_.pop_back();
      point.pop_back();
    }
    return {};
  }

  Status walk_inner(const std::vector<ProblemFlags::Given>& point) {
    const Axis& inner = axes_[inner_];
    const std::int64_t step = std::max<std::int64_t>(inner.step, 1);
    ProblemAndDevice problem = base_;
    CUBIST_RETURN_IF_ERROR(set_fields(point, problem));
    Outcome last;
    bool open = false;
    for (std::int64_t value = inner.first; value <= inner.last; value += step) {
      CUBIST_RETURN_IF_ERROR(set_fields({{inner.field, std::to_string(value)}}, problem));
      const Outcome outcome = ask(problem);
      if (!open || !(outcome == last)) {
        open_segment(outcome);
        open = true;
        last = outcome;
        result_.segments.back().from = std::to_string(value);
      }
      result_.segments.back().to = std::to_string(value);
      ++result_.segments.back().num_problems;
    }
    return {};
  }

  Outcome ask(const ProblemAndDevice& problem) {
    ++result_.num_problems;
    status_ = ruled_.select_into(problem.problem, problem.device, options_, selection_);
    if (!status_) {
      ++result_.num_refused;
      return {nullptr, FallbackReason::kNone, status_.error().code()};
    }
    const LaunchPlan& plan = selection_.best();
    if (plan.fallback != FallbackReason::kNone) ++result_.num_fallbacks;
    return {plan.record, plan.fallback, StatusCode::kOk};
  }

  void open_segment(const Outcome& outcome) {
    SweepSegment& segment = result_.segments.emplace_back();
    segment.outer = outer_;
    segment.fallback = to_string(outcome.fallback);
    if (outcome.record == nullptr) {
      segment.detail = status_.error().message();
      segment.code = outcome.code;
      return;
    }
    segment.kernel = outcome.record->name;
    segment.sha256 = outcome.record->sha256.hex();
    segment.detail = describe_kernel(selection_.best());
  }

  static constexpr std::size_t kNoAxis = static_cast<std::size_t>(-1);

  const RuledSelection& ruled_;
  const selector::SelectOptions& options_;
  ProblemAndDevice base_;
  std::vector<Axis> axes_;
  std::size_t inner_ = kNoAxis;
  std::vector<std::string> outer_;
  Status status_;
  Selection selection_;
  SweepResult result_;
};

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace

Result<SweepResult> run_sweep(const RuledSelection& ruled, const ProblemFlags& flags,
                              const selector::SelectOptions& options) {
  return Sweep(ruled, options).run(flags);
}

std::optional<Error> refusal_of_all(const SweepResult& result) {
  if (result.num_refused < result.num_problems) return std::nullopt;
  std::map<std::pair<StatusCode, std::string_view>, std::uint64_t> counts;
  for (const SweepSegment& segment : result.segments) {
    counts[{segment.code, segment.detail}] += segment.num_problems;
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) return std::nullopt;
  return Error(most->first.first,
               fmt::format("all {} problems of the sweep are refused, {} of them so: {}",
                           result.num_problems, most->second, most->first.second));
}

std::string sweep_csv(const SweepResult& result) {
  std::string out;
  for (const std::string& field : result.outer_fields) out += field + ",";
  out += fmt::format("{0}_from,{0}_to,kernel,sha256,detail,fallback\n", result.inner_field);
  for (const SweepSegment& segment : result.segments) {
    for (const std::string& value : segment.outer) out += csv_text(value) + ",";
    out += fmt::format("{},{},{},{},{},{}\n", segment.from, segment.to, csv_text(segment.kernel),
                       segment.sha256, csv_text(segment.detail), segment.fallback);
  }
  return out;
}

std::string sweep_json(const SweepResult& result, const std::optional<Error>& error) {
  std::string out;
  JsonWriter json(out);
  json.begin('{');
  json.field("problems", result.num_problems);
  json.field("fallbacks", result.num_fallbacks).field("refused", result.num_refused);
  json.field("inner_field", result.inner_field);
  json.key("segments").begin('[');
  for (const SweepSegment& segment : result.segments) {
    json.begin('{');
    for (std::size_t i = 0; i < segment.outer.size(); ++i) {
      json.field(result.outer_fields[i], segment.outer[i]);
    }
    json.field("from", segment.from).field("to", segment.to);
    json.field("ok", !segment.kernel.empty());
    json.field("kernel", segment.kernel).field("sha256", segment.sha256);
    json.field("detail", segment.detail).field("fallback", segment.fallback).end('}');
  }
  json.end(']');
  if (error) json.key("error").raw(error_json_text(*error));
  json.end('}');
  return out;
}

std::string sweep_text(const SweepResult& result) {
  std::string out;
  std::vector<std::string> heading;
  bool first = true;
  for (const SweepSegment& segment : result.segments) {
    if (first || segment.outer != heading) {
      heading = segment.outer;
      for (std::size_t i = 0; i < heading.size(); ++i) {
        out += fmt::format("{}{} {}", i == 0 ? "" : ", ", result.outer_fields[i], heading[i]);
      }
      if (!heading.empty()) out += '\n';
      first = false;
    }
    const std::string range =
        segment.from == segment.to ? segment.from : fmt::format("{}..{}", segment.from, segment.to);
    out += fmt::format("  {} {:<16} {}\n", result.inner_field, range,
                       segment.kernel.empty() ? "none: " + segment.detail : segment.detail);
    if (!segment.kernel.empty()) {
      out += fmt::format("    {}{}\n", segment.kernel,
                         segment.fallback.empty() ? "" : "  [fallback: " + segment.fallback + "]");
    }
  }
  out += fmt::format("{} problems: {} stretches, {} fallbacks, {} refused\n", result.num_problems,
                     result.segments.size(), result.num_fallbacks, result.num_refused);
  return out;
}

}  // namespace cubist::tools
