#include "filter_options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "manifest/words.h"

namespace cubist::tools {
namespace {

template <class Enum>
Status read_words(const char* flag, const std::vector<std::string>& texts, std::vector<Enum>& out) {
  for (const std::string& text : texts) {
    const std::optional<Enum> word = parse_word<Enum>(text);
    if (!word) {
      return fail(StatusCode::kInvalidArgument, "{} '{}': allowed are {}", flag, text,
                  word_list<Enum>());
    }
    out.push_back(*word);
  }
  return {};
}

}  // namespace

void add_filter_options(CLI::App& command, FilterArguments& arguments) {
  const auto add = [&](const char* flag, std::vector<std::string>& out, const char* help) {
    command.add_option(flag, out, help)->delimiter(',')->allow_extra_args(false)->group("Filters");
  };
  add("--arch", arguments.archs,
      "sm_100f: that architecture; sm_100: all that runs on such a device");
  add("--dtype-q", arguments.dtypes_q, "Type of Q: bf16, fp16, e4m3, ...");
  add("--dtype-kv", arguments.dtypes_kv, "Type of K or V: bf16, e4m3, e2m1, ...");
  add("--dtype-o", arguments.dtypes_o, "Type of O");
  add("--head-dim", arguments.head_dims, "Head dimension: 128, or 576/512 for Q and K, V and O");
  add("--phase", arguments.phases, "decode, context or ragged");
  add("--name", arguments.names, "Pattern of the name; * is any text, ? any character");
  add("--sha256", arguments.digests, "Digest of the file");
}

Result<KernelFilter> read_filter(const FilterArguments& arguments) {
  KernelFilter filter;
  for (const std::string& text : arguments.archs) {
    if (!parse_sm_arch(text)) {
      return fail(StatusCode::kInvalidArgument,
                  "--arch '{}': give an architecture such as sm_100f, or a device's such as sm_100",
                  text);
    }
  }
  filter.archs = arguments.archs;
  CUBIST_RETURN_IF_ERROR(read_words("--dtype-q", arguments.dtypes_q, filter.dtypes_q));
  CUBIST_RETURN_IF_ERROR(read_words("--dtype-kv", arguments.dtypes_kv, filter.dtypes_kv));
  CUBIST_RETURN_IF_ERROR(read_words("--dtype-o", arguments.dtypes_o, filter.dtypes_o));
  CUBIST_RETURN_IF_ERROR(read_words("--phase", arguments.phases, filter.phases));
  for (const std::string& text : arguments.head_dims) {
    auto head_dim = parse_head_dim(text);
    if (!head_dim) return forward_error(head_dim, "--head-dim");
    filter.head_dims.push_back(*head_dim);
  }
  filter.names = arguments.names;
  for (const std::string& text : arguments.digests) {
    const auto digest = Sha256Digest::parse(text);
    if (!digest) {
      return fail(StatusCode::kInvalidArgument,
                  "--sha256 '{}': {} characters; 64 hexadecimal digits are needed", text,
                  text.size());
    }
    filter.digests.push_back(*digest);
  }
  return filter;
}

}  // namespace cubist::tools
