#include "launch_jsonl.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "codec/json_writer.h"
#include "codec/plan_json.h"
#include "launch_addresses.h"
#include "launch_inputs.h"
#include "launcher/decode_args.h"
#include "launcher/decode_maps.h"
#include "launcher/trtllm_gen/param_block.h"
#include "launcher/trtllm_gen/prepare.h"
#include "model/derived_problem.h"
#include "ruled_selection.h"
#include "select_input.h"

namespace cubist::tools {
namespace {

// CUtensorMapL2promotion of every descriptor that is made: 128 bytes.
constexpr int kL2Promotion = 2;

void append_hex(std::span<const std::uint8_t> bytes, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::size_t at = out.size();
  out.resize(at + bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out[at++] = kDigits[byte >> 4];
    out[at++] = kDigits[byte & 15];
  }
}

void append_map(const TensorMapSpec& spec, JsonWriter& json) {
  const std::size_t rank = spec.rank;
  json.begin('{');
  json.field("slot", spec.slot);
  json.field("addr", fmt::format("{:#x}", spec.address));
  json.field("dtype", static_cast<std::uint32_t>(spec.type));
  json.list("dims", std::span(spec.dims).first(rank));
  json.list("strides", std::span(spec.strides).first(rank - 1));
  json.list("box", std::span(spec.box).first(rank));
  constexpr std::array<int, TensorMapSpec::kMaxRank> kDense = {1, 1, 1, 1, 1};
  json.list("elem_strides", std::span(kDense).first(rank));
  json.field("interleave", 0);
  json.field("swizzle", static_cast<std::uint32_t>(spec.swizzle));
  json.field("l2", kL2Promotion).field("oob", 0).end('}');
}

/// What is launched, beside the plan.
struct LaunchBytes {
  std::span<const std::uint8_t> params;
  std::size_t offset = 0;  ///< of the first byte that is shown
  std::span<const TensorMapSpec> maps;
};

void append_answer(const ProblemLine& problem, const Selection& selection,
                   const PlanAddresses& addresses, const LaunchBytes& bytes, std::string& out) {
  append_answer_json(problem.in_text, problem.value.problem, selection, out, addresses);
  out.back() = ',';  // the answer's closing bracket
  JsonWriter json(out);
  json.field("params_size", bytes.params.size());
  json.field("params_hex_offset", bytes.offset);
  json.key("params_hex").raw("\"");
  append_hex(bytes.params.subspan(bytes.offset), out);
  out.push_back('"');
  json.key("tensor_maps").begin('[');
  for (const TensorMapSpec& map : bytes.maps) append_map(map, json);
  json.end(']').end('}');
}

Status append_trtllm_gen(const ProblemLine& problem, const Selection& selection,
                         const trtllm_gen::Addresses& addresses, std::string& out) {
  trtllm_gen::ParamBlock block;
  CUBIST_RETURN_IF_ERROR(block.fill(trtllm_gen::prepare_problem(problem.value.problem),
                                    selection.best(), problem.value.device.num_sms, addresses));
  const trtllm_gen::TensorMaps& maps = block.tensor_maps();
  append_answer(problem, selection, {addresses.workspace, addresses.lse},
                {block.bytes(), block.scalars_offset(), std::span(maps.maps).first(maps.count)},
                out);
  return {};
}

Status append_decode(const AttentionProblem& derived, const ProblemLine& problem,
                     const Selection& selection, const trtllm_gen::Addresses& addresses,
                     std::string& out) {
  const LaunchPlan& plan = selection.best();
  const launcher::CallArgs args = decode_args(derived, addresses);
  CubistDecodeParams params;
  CUBIST_RETURN_IF_ERROR(launcher::fill_decode_params(derived, plan, args, params));
  LaunchBytes bytes;
  bytes.params = {reinterpret_cast<const std::uint8_t*>(&params), sizeof(params)};
  std::array<TensorMapSpec, 2> maps;
  if (plan.record->traits.scheduler == TileScheduler::kPersistent) {
    CUBIST_ASSIGN_OR_RETURN(maps, launcher::describe_decode_maps(derived, plan, args));
    bytes.maps = maps;
  }
  append_answer(problem, selection, {addresses.workspace, addresses.lse}, bytes, out);
  return {};
}

/// An opened file, closed again; standard input stays open.
class Input {
 public:
  static Result<Input> open(const std::string& file) {
    if (file == "-") return Input(STDIN_FILENO);
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) return Input(descriptor);
    return fail(errno == ENOENT ? StatusCode::kNotFound : StatusCode::kIo,
                "cannot open the problems '{}': {}", file, std::strerror(errno));
  }
  Input(Input&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Input& operator=(Input&&) = delete;
  ~Input() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  explicit Input(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace

Status append_launch_answer(std::string_view line, const ProblemLine& problem,
                            const Selection& selection, std::string& out) {
  const AttentionProblem derived = with_derived_fields(problem.value.problem);
  CUBIST_RETURN_IF_ERROR(check_scales(derived));
  CUBIST_ASSIGN_OR_RETURN(const trtllm_gen::Addresses addresses, read_addresses(line, derived));
  switch (selection.best().family) {
    case KernelFamily::kTrtllmGenFmha:
      return append_trtllm_gen(problem, selection, addresses, out);
    case KernelFamily::kCubistDecode:
      return append_decode(derived, problem, selection, addresses, out);
    case KernelFamily::kCubistAux:
      break;
  }
  return fail(StatusCode::kInternal, "a selection of the family {}",
              to_string(selection.best().family));
}

Result<JsonlCounts> run_launch_jsonl(const LaunchJsonl& what) {
  CUBIST_ASSIGN_OR_RETURN(const Input input, Input::open(what.file));
  CUBIST_ASSIGN_OR_RETURN(const OpenedManifests opened, open_manifests(what.manifests, {}));
  CUBIST_ASSIGN_OR_RETURN(const RuledSelection ruled, RuledSelection::open(opened.table, ""));
  selector::SelectOptions options;
  options.strict = what.strict;
  return run_jsonl(ruled, what.device, options, input.get(), STDOUT_FILENO, append_launch_answer);
}

}  // namespace cubist::tools
