#include "importer/cpp_lexer.h"

#include <algorithm>

namespace cubist {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

}  // namespace

tl::unexpected<Error> CppLexer::error(std::uint32_t line, std::string_view message) const {
  return fail(StatusCode::kManifestInvalid, "{}:{}: {}", file_, line, message);
}

void CppLexer::skip_line(bool continued) {
  while (at_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const bool goes_on = continued && end > at_ && text_[end - 1] == '\\';
    at_ = end;
    if (!goes_on || at_ == text_.size()) return;
    ++at_;
    ++line_;
  }
}

Status CppLexer::skip_block_comment() {
  const std::uint32_t first_line = line_;
  const std::size_t end = text_.find("*/", at_ + 2);
  if (end == std::string_view::npos) return error(first_line, "the text ends inside this comment");
  line_ += static_cast<std::uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(end),
                                                 '\n'));
  at_ = end + 2;
  return {};
}

/// White space, a line comment or a preprocessor line; false if there is none here.
bool CppLexer::skip_one_space() {
  const char c = text_[at_];
  if (c == '\n') {
    ++at_;
    ++line_;
    line_start_ = true;
    return true;
  }
  if (c == ' ' || c == '\t' || c == '\r') {
    ++at_;
    return true;
  }
  if (c == '#' && line_start_) {
    skip_line(true);
    return true;
  }
  if (text_.compare(at_, 2, "//") == 0) {
    skip_line(false);
    return true;
  }
  return false;
}

Status CppLexer::skip_space() {
  while (at_ < text_.size()) {
    if (skip_one_space()) continue;
    if (text_.compare(at_, 2, "/*") != 0) break;
    CUBIST_RETURN_IF_ERROR(skip_block_comment());
  }
  return {};
}

Result<CppToken> CppLexer::string_token() {
  for (std::size_t end = at_ + 1; end < text_.size() && text_[end] != '\n'; ++end) {
    if (text_[end] == '\\') {
      return error(line_, "a string with an escape; names and digests need none");
    }
    if (text_[end] != '"') continue;
    const CppToken token{CppToken::Kind::kString, text_.substr(at_ + 1, end - at_ - 1), line_};
    at_ = end + 1;
    return token;
  }
  return error(line_, "the line ends inside a string");
}

std::size_t CppLexer::word_length() const {
  std::size_t length = 1;
  while (at_ + length < text_.size() && is_word(text_[at_ + length])) ++length;
  return length;
}

Result<CppToken> CppLexer::next() {
  CUBIST_RETURN_IF_ERROR(skip_space());
  if (at_ == text_.size()) return CppToken{CppToken::Kind::kEnd, {}, line_};
  line_start_ = false;
  const char c = text_[at_];
  if (c == '"') return string_token();
  CppToken token{CppToken::Kind::kPunctuation, {}, line_};
  std::size_t length = 1;
  if (is_word_start(c)) {
    token.kind = CppToken::Kind::kWord;
    length = word_length();
  } else if (is_digit(c)) {
    token.kind = CppToken::Kind::kNumber;
    length = word_length();
  } else if (static_cast<unsigned char>(c) < 0x21 || static_cast<unsigned char>(c) > 0x7e) {
    return error(line_,
                 fmt::format("byte 0x{:02x}: this is no C++ text", static_cast<unsigned char>(c)));
  }
  token.text = text_.substr(at_, length);
  at_ += length;
  return token;
}

}  // namespace cubist
