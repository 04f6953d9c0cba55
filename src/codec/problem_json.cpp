#include "codec/problem_json.h"

#include <bitset>
#include <utility>
#include <vector>

#include "codec/json_reader.h"
#include "codec/json_writer.h"
#include "selector/occupancy.h"

namespace cubist {
namespace {

using P = AttentionProblem;
using D = DeviceProfile;

constexpr std::size_t kMaxFields = 64;

/// Reads the value of one field; false with a fault in the reader where it is of another kind.
struct FieldReader {
  JsonReader& reader;
  ProblemAndDevice& out;
  bool& has_gpcs;

  template <class T, class Owner>
  bool integer(T Owner::*member, Owner& owner) const {
    std::int64_t value = 0;
    if (!reader.read_integer(value)) return false;
    if (!std::in_range<T>(value)) return reader.fault("the number does not fit the field");
    owner.*member = static_cast<T>(value);
    return true;
  }
  template <class T, class Parse>
  bool word(T& target, Parse parse, std::string_view accepted) const {
    std::string_view text;
    if (!reader.read_string(text)) return false;
    const auto value = parse(text);
    if (!value) return reader.fault(accepted);
    target = *value;
    return true;
  }
  bool dtype(Dtype& target) const {
    return word(target, parse_dtype, "expected one of fp16 bf16 fp32 int8 int32 e4m3 e5m2 e2m1");
  }
  bool real(float& target) const {
    double value = 0;
    if (!reader.read_number(value)) return false;
    target = static_cast<float>(value);
    return true;
  }

  bool operator()(std::int32_t P::*m) const { return integer(m, out.problem); }
  bool operator()(std::int64_t P::*m) const { return integer(m, out.problem); }
  bool operator()(std::uint32_t D::*m) const { return integer(m, out.device); }
  bool operator()(std::int32_t D::*m) const { return integer(m, out.device); }
  bool operator()(bool P::*m) const { return reader.read_bool(out.problem.*m); }
  bool operator()(float P::*m) const { return real(out.problem.*m); }
  bool operator()(std::optional<float> P::*m) const { return real((out.problem.*m).emplace()); }
  bool operator()(ScaleArgument P::*m) const {
    ScaleArgument scale;
    if (reader.peek() == JsonReader::Type::kString) {
      std::string_view text;
      if (!reader.read_string(text)) return false;
      if (text != "ptr") return reader.fault("expected a number or \"ptr\"");
      scale.on_device = true;
    } else if (!reader.read_number(scale.value)) {
      return false;
    }
    out.problem.*m = scale;
    return true;
  }
  bool operator()(Dtype P::*m) const { return dtype(out.problem.*m); }
  bool operator()(Phase P::*m) const {
    return word(out.problem.*m, parse_phase, "expected one of decode context ragged");
  }
  bool operator()(KvLayout P::*m) const {
    return word(out.problem.*m, parse_kv_layout, "expected HND or NHD");
  }
  bool operator()(std::array<std::int32_t, 4> P::*m) const {
    std::size_t count = 0;
    if (!reader.begin_array()) return false;
    while (reader.next_element()) {
      std::int64_t value = 0;
      if (!reader.read_integer(value)) return false;
      if (count == 4 || value < 0 || value > 255) {
        return reader.fault("expected four block sizes of 0..255: [q, k, p, v]");
      }
      (out.problem.*m)[count++] = static_cast<std::int32_t>(value);
    }
    if (reader.failed()) return false;
    return count == 4 || reader.fault("expected four block sizes: [q, k, p, v]");
  }
  bool operator()(ProblemField::BothKvTypes) const {
    return dtype(out.problem.dtype_k) && (out.problem.dtype_v = out.problem.dtype_k, true);
  }
  bool operator()(ProblemField::Gpcs) const {
    std::vector<std::int32_t> sizes;
    if (!reader.begin_array()) return false;
    while (reader.next_element()) {
      std::int64_t value = 0;
      if (!reader.read_integer(value)) return false;
      if (value < 1 || value > kMaxSmsOfGpc || sizes.size() == kMaxGpcs) {
        return reader.fault("expected SMs of each GPC: up to 256 numbers of 1..256");
      }
      sizes.push_back(static_cast<std::int32_t>(value));
    }
    if (reader.failed()) return false;
    out.device.max_active_clusters = selector::clusters_from_gpcs(sizes);
    has_gpcs = true;
    return true;
  }
};

/// dtype_k and dtype_v name one side of what dtype_kv says; they win wherever they stand.
struct KvTypes {
  std::optional<Dtype> k;
  std::optional<Dtype> v;
};

class ProblemReader {
 public:
  ProblemReader(std::string_view text, const DeviceProfile& device, ProblemLine& out)
      : reader_(text), text_(text), out_(out) {
    out_.value.problem = AttentionProblem{};
    out_.value.device = device;
    given_sms_ = device.num_sms;
  }

  Status run() {
    if (!read_object(true)) return error();
    if (!reader_.at_end()) {
      reader_.fault("text after the object");
      return error();
    }
    return {};
  }

 private:
  Status error() const {
    Status status = reader_.status();
    if (field_.empty() || status) return status;
    return tl::unexpected<Error>(std::move(status.error()).with_context(field_));
  }

  /// A problem's object, or with `may_wrap` one whose "in" is a problem. Which of the two shows
  /// only when "in" turns up, so fields of a wrapping object are passed over first.
  bool read_object(bool may_wrap) {
    if (may_wrap && has_in()) return read_wrapped();
    reader_.peek();
    const std::size_t begin = reader_.offset();
    if (!read_fields()) return false;
    out_.in_text = text_.substr(begin, reader_.offset() - begin);
    return true;
  }

  /// Looks ahead for an "in" at the top level.
  bool has_in() const {
    if (text_.find("\"in\"") == std::string_view::npos) return false;
    JsonReader ahead = reader_;
    std::string_view key;
    std::string_view raw;
    if (!ahead.begin_object()) return false;
    while (ahead.next_key(key)) {
      if (key == "in") return true;
      if (!ahead.skip_value(raw)) return false;
    }
    return false;
  }

  bool read_wrapped() {
    std::string_view key;
    std::string_view raw;
    bool seen = false;
    if (!reader_.begin_object()) return false;
    while (reader_.next_key(key)) {
      if (key != "in") {
        if (!reader_.skip_value(raw)) return false;
        continue;
      }
      if (seen) return reader_.fault("\"in\" is there twice");
      seen = true;
      if (!read_object(false)) return false;
    }
    return !reader_.failed();
  }

  bool read_fields() {
    if (!reader_.begin_object()) return false;
    std::bitset<kMaxFields> seen;
    KvTypes kv;
    bool has_gpcs = false;
    std::string_view key;
    while (reader_.next_key(key)) {
      if (key == "id" || key == "family" || key == "addresses") {
        std::string_view passed_over;
        if (!reader_.skip_value(passed_over)) return false;
        continue;
      }
      const ProblemField* field = find_problem_field(key);
      if (field == nullptr) {
        field_.assign(key);
        return reader_.fault("unknown field");
      }
      const auto index = static_cast<std::size_t>(field - problem_fields().data());
      if (seen[index]) {
        field_.assign(key);
        return reader_.fault("the field is there twice");
      }
      seen.set(index);
      if (!std::visit(FieldReader{reader_, out_.value, has_gpcs}, field->member)) {
        field_.assign(field->name);
        return false;
      }
      if (field->name == "dtype_k") kv.k = out_.value.problem.dtype_k;
      if (field->name == "dtype_v") kv.v = out_.value.problem.dtype_v;
    }
    if (reader_.failed()) return false;
    if (kv.k) out_.value.problem.dtype_k = *kv.k;
    if (kv.v) out_.value.problem.dtype_v = *kv.v;
    settle_device(has_gpcs);
    return true;
  }

  void settle_device(bool has_gpcs) {
    DeviceProfile& device = out_.value.device;
    if (has_gpcs) return;
    // Another number of SMs is another chip: what was known of clusters does not hold for it.
    if (device.num_sms != given_sms_)
      device.max_active_clusters = DeviceProfile{}.max_active_clusters;
    complete_device(device);
  }

  JsonReader reader_;
  std::string_view text_;
  ProblemLine& out_;
  std::int32_t given_sms_ = 0;
  std::string field_;
};

/// Writes a field that differs from `defaults`.
struct FieldWriter {
  JsonWriter& json;
  std::string_view name;
  const P& problem;
  const P& defaults;

  template <class T>
  void scalar(T P::*m) const {
    if (problem.*m != defaults.*m) json.field(name, problem.*m);
  }
  template <class T>
  void word(T P::*m) const {
    if (problem.*m != defaults.*m) json.field(name, to_string(problem.*m));
  }

  void operator()(std::int32_t P::*m) const { scalar(m); }
  void operator()(std::int64_t P::*m) const { scalar(m); }
  void operator()(bool P::*m) const { scalar(m); }
  void operator()(float P::*m) const { scalar(m); }
  void operator()(std::optional<float> P::*m) const {
    if (problem.*m) json.field(name, *(problem.*m));
  }
  void operator()(ScaleArgument P::*m) const {
    const ScaleArgument& scale = problem.*m;
    if (scale.on_device) {
      json.field(name, "ptr");
    } else if (scale.value != (defaults.*m).value) {
      json.field(name, scale.value);
    }
  }
  void operator()(Dtype P::*m) const { word(m); }
  void operator()(Phase P::*m) const { word(m); }
  void operator()(KvLayout P::*m) const { word(m); }
  void operator()(std::array<std::int32_t, 4> P::*m) const {
    if (problem.*m != defaults.*m) json.list(name, problem.*m);
  }
  void operator()(std::uint32_t D::* /*m*/) const {}
  void operator()(std::int32_t D::* /*m*/) const {}
  void operator()(ProblemField::BothKvTypes) const {}
  void operator()(ProblemField::Gpcs) const {}
};

bool is_written_first(std::string_view name) {
  for (const std::string_view first :
       {"phase", "dtype_q", "dtype_k", "dtype_v", "dtype_o", "num_q_heads", "num_kv_heads",
        "head_dim_qk", "head_dim_vo", "batch", "max_q_len", "max_kv_len", "page_size"}) {
    if (name == first) return true;
  }
  return false;
}

void append_main_fields(const P& p, const D& device, JsonWriter& json) {
  json.field("phase", to_string(p.phase));
  json.field("sm", device.sm);
  json.field("num_sms", device.num_sms);
  json.field("dtype_q", to_string(p.dtype_q));
  json.field("dtype_kv", to_string(p.dtype_k));
  if (p.dtype_v != p.dtype_k) json.field("dtype_v", to_string(p.dtype_v));
  json.field("dtype_o", to_string(p.dtype_o));
  json.field("num_q_heads", p.num_q_heads);
  json.field("num_kv_heads", p.num_kv_heads);
  json.field("head_dim_qk", p.head_dim_qk);
  json.field("head_dim_vo", p.head_dim_vo == -1 ? p.head_dim_qk : p.head_dim_vo);
  json.field("batch", p.batch);
  json.field("max_q_len", p.max_q_len);
  json.field("max_kv_len", p.max_kv_len);
  if (p.phase != Phase::kRagged) json.field("page_size", p.page_size);
}

}  // namespace

Status read_problem(std::string_view text, const DeviceProfile& device, ProblemLine& out) {
  return ProblemReader(text, device, out).run();
}

void append_problem_json(const AttentionProblem& problem, const DeviceProfile& device,
                         std::string& out) {
  JsonWriter json(out);
  json.begin('{');
  append_main_fields(problem, device, json);
  const AttentionProblem defaults;
  for (const ProblemField& field : problem_fields()) {
    if (is_written_first(field.name)) continue;
    std::visit(FieldWriter{json, field.name, problem, defaults}, field.member);
  }
  json.end('}');
}

}  // namespace cubist
