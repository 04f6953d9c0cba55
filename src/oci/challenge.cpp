#include "oci/challenge.h"

#include <optional>

namespace cubist::oci {
namespace {

constexpr std::size_t kMaxChallenges = 16;
constexpr std::size_t kMaxParameters = 16;

/// Characters of a token (RFC 9110 5.6.2) and of token68.
bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != std::string_view::npos;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip(std::string_view characters) {
    text_.remove_prefix(std::min(text_.find_first_not_of(characters), text_.size()));
  }
  std::string token(bool lower_case) {
    std::string out;
    while (!text_.empty() && is_token_char(text_.front())) {
      const char c = text_.front();
      out += static_cast<char>(lower_case && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      text_.remove_prefix(1);
    }
    return out;
  }
  /// After the opening quote; nullopt if it does not end.
  std::optional<std::string> quoted() {
    std::string out;
    while (!text_.empty()) {
      char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return out;
      if (c == '\\') {
        if (text_.empty()) return std::nullopt;
        c = text_.front();
        text_.remove_prefix(1);
      }
      out += c;
    }
    return std::nullopt;
  }
  /// Where a parameter begins: a token and "=" that is not the padding of a token68.
  bool at_parameter() const {
    std::size_t end = 0;
    while (end < text_.size() && is_token_char(text_[end])) ++end;
    const std::size_t sign = text_.find_first_not_of(" \t", end);
    return end != 0 && sign != std::string_view::npos && text_[sign] == '=';
  }

 private:
  std::string_view text_;
};

/// False where the text stops making sense.
bool read_parameter(Scanner& scanner, Challenge& challenge) {
  const std::string name = scanner.token(true);
  scanner.skip(" \t");
  if (name.empty() || !scanner.take('=')) return false;
  scanner.skip(" \t");
  std::optional<std::string> value;
  if (scanner.take('"')) {
    value = scanner.quoted();
  } else {
    value = scanner.token(false);
  }
  if (!value || challenge.parameters.size() >= kMaxParameters) return false;
  challenge.parameters.emplace(name, std::move(*value));  // of two the first counts
  return true;
}

void read_value(std::string_view text, std::vector<Challenge>& found) {
  Scanner scanner(text);
  scanner.skip(" \t,");
  while (!scanner.at_end() && found.size() < kMaxChallenges) {
    Challenge challenge;
    challenge.scheme = scanner.token(true);
    if (challenge.scheme.empty()) return;
    scanner.skip(" \t");
    while (scanner.at_parameter()) {
      if (!read_parameter(scanner, challenge)) return;
      scanner.skip(" \t,");
    }
    found.push_back(std::move(challenge));
    scanner.skip(" \t,");
  }
}

}  // namespace

std::string Challenge::parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::string() : found->second;
}

std::vector<Challenge> parse_challenges(std::span<const std::string> values) {
  std::vector<Challenge> found;
  for (const std::string& value : values) read_value(value, found);
  return found;
}

}  // namespace cubist::oci
