#include "document/pointer_line.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

namespace cubist {
namespace {

/// Walks over a JSON text whose syntax was checked; looks no further than its end all the same.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) { skip_space(); }

  std::size_t at() const { return at_; }

  /// From the first character of an object or array to that of the member or item with this step;
  /// nothing, and the place as it was, if there is none.
  bool enter(std::string_view step) {
    const std::size_t start = at_;
    const bool found = look() == '{' ? enter_object(step) : look() == '[' && enter_array(step);
    if (!found) at_ = start;
    return found;
  }

 private:
  char look() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    at_ = std::min(at_ + 1, text_.size());
  }

  void skip_value() {
    if (look() == '"') {
      skip_string();
    } else if (look() == '{' || look() == '[') {
      skip_nested();
    } else {
      at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    }
    skip_space();
  }

  void skip_nested() {
    std::size_t depth = 0;
    do {
      const char first = look();
      if (first == '"') {
        skip_string();
        continue;
      }
      depth += first == '{' || first == '[' ? 1 : 0;
      depth -= first == '}' || first == ']' ? 1 : 0;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
  }

  bool enter_object(std::string_view step) {
    while (at_ < text_.size() && look() != '}') {
      ++at_;  // the opening brace, or a comma
      skip_space();
      const std::size_t begin = at_;
      if (look() != '"') return false;
      skip_string();
      const auto key = nlohmann::json::parse(text_.substr(begin, at_ - begin), nullptr, false);
      skip_space();
      ++at_;  // the colon
      skip_space();
      if (key.is_string() && step_of_pointer(key.get_ref<const std::string&>()) == step)
        return true;
      skip_value();
    }
    return false;
  }

  bool enter_array(std::string_view step) {
    std::size_t index = 0;
    const auto parsed = std::from_chars(step.data() + 1, step.data() + step.size(), index);
    if (parsed.ec != std::errc()) return false;
    for (std::size_t i = 0; at_ < text_.size() && look() != ']'; ++i) {
      ++at_;  // the opening bracket, or a comma
      skip_space();
      if (look() == ']') return false;
      if (i == index) return true;
      skip_value();
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string step_of_pointer(std::string_view key) {
  std::string out = "/";
  for (const char character : key.substr(0, 80)) {
    if (character == '~') {
      out += "~0";
    } else if (character == '/') {
      out += "~1";
    } else {
      out += static_cast<unsigned char>(character) < 0x20 ? '?' : character;
    }
  }
  return out;
}

std::size_t line_of_pointer(std::string_view text, std::string_view pointer) {
  Walker walker(text);
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    if (!walker.enter(pointer.substr(0, end))) break;
    pointer.remove_prefix(end);
  }
  return 1 + static_cast<std::size_t>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(walker.at()), '\n'));
}

}  // namespace cubist
