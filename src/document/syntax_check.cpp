#include "document/syntax_check.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "document/json_text.h"

namespace cubist {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMaxDepth = 64;

/// Listens to nlohmann's parser; false stops it. One set of keys per open object, an empty one per
/// open array.
class SyntaxListener {
 public:
  explicit SyntaxListener(std::string_view file_name) : file_name_(file_name) {}
  std::optional<Error> take_error() { return std::move(error_); }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return enter(); }
  bool start_array(std::size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool end_array() { return leave(); }
  bool key(std::string& name) {
    if (keys_.back().insert(name).second) return true;
    return reject(fmt::format("the key {} occurs twice in one object", in_quotes(name)));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: ...": the tag is noise.
    std::string_view message = error.what();
    if (const std::size_t end = message.find("] "); end != std::string_view::npos) {
      message.remove_prefix(end + 2);
    }
    std::string visible;
    for (const char character : message.substr(0, 300)) {
      visible += static_cast<unsigned char>(character) < 0x20 ? '?' : character;
    }
    return reject(fmt::format("not a JSON text: {}", visible));
  }

 private:
  bool enter() {
    if (keys_.size() == kMaxDepth) {
      return reject(fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }
  bool reject(std::string_view message) {
    error_ = Error(StatusCode::kInvalidArgument, fmt::format("{}: {}", file_name_, message));
    return false;
  }

  std::string_view file_name_;
  std::vector<std::set<std::string>> keys_;
  std::optional<Error> error_;
};

}  // namespace

Status check_json_syntax(std::string_view text, std::string_view file_name) {
  SyntaxListener listener(file_name);
  if (Json::sax_parse(text, &listener)) {
    // To this parser a NUL is the end of the text, whatever follows.
    const std::size_t nul = text.find('\0');
    if (nul == std::string_view::npos) return {};
    return fail(StatusCode::kInvalidArgument,
                "{}: not a JSON text: parse error at byte {}: a NUL, which no JSON text has",
                file_name, nul + 1);
  }
  if (std::optional<Error> error = listener.take_error()) {
    return tl::unexpected<Error>(std::move(*error));
  }
  return fail(StatusCode::kInvalidArgument, "{}: not a JSON text", file_name);
}

}  // namespace cubist
