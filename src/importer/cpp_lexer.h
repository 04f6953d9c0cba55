#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cubist {

/// A piece of C++ text.
struct CppToken {
  enum class Kind : std::uint8_t { kEnd, kWord, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;  ///< a string's without its quotes
  std::uint32_t line = 0;

  bool is(char punctuation) const { return kind == Kind::kPunctuation && text[0] == punctuation; }
  bool is(std::string_view word) const { return kind == Kind::kWord && text == word; }
};

/// Cuts C++ text into tokens; skips white space, comments and preprocessor lines. Every punctuation
/// character is a token of its own. No raw strings.
class CppLexer {
 public:
  /// Both must outlive the lexer; tokens point into `text`.
  CppLexer(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  /// kEnd at the end of the text, however often it is asked for.
  /// errors  kManifestInvalid: a string or comment without end, a byte that starts no token
  Result<CppToken> next();

  /// "file:17: message" with code kManifestInvalid.
  tl::unexpected<Error> error(std::uint32_t line, std::string_view message) const;

 private:
  Status skip_space();
  bool skip_one_space();
  Status skip_block_comment();
  void skip_line(bool continued);
  Result<CppToken> string_token();
  std::size_t word_length() const;

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_start_ = true;  // only white space so far on this line
};

}  // namespace cubist
