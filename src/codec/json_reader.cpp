#include "codec/json_reader.h"

#include <charconv>

namespace cubist {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Bytes of the UTF-8 sequence at the front of `text`, 0 if it is none. Refuses overlong forms,
/// surrogates and anything past U+10FFFF (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&](std::size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1, 0x80, 0xbf) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2, 0x80, 0xbf) && continues(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// Four hexadecimal digits at `at`.
bool hex4(std::string_view text, std::size_t at, std::uint32_t& value) {
  if (at + 4 > text.size()) return false;
  const char* end = text.data() + at + 4;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value, 16);
  return error == std::errc() && stop == end;
}

}  // namespace

void JsonReader::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

bool JsonReader::fault(std::string_view what) {
  if (!failed_) {
    failed_ = true;
    fault_at_ = at_;
    fault_.assign(what);
  }
  return false;
}

Status JsonReader::status() const {
  if (!failed_) return {};
  return fail(StatusCode::kInvalidArgument, "offset {}: {}", fault_at_, fault_);
}

JsonReader::Type JsonReader::peek() {
  if (failed_) return Type::kNone;
  skip_space();
  if (at_ == text_.size()) return Type::kNone;
  switch (text_[at_]) {
    case '{':
      return Type::kObject;
    case '[':
      return Type::kArray;
    case '"':
      return Type::kString;
    case 't':
    case 'f':
      return Type::kBool;
    case 'n':
      return Type::kNull;
    default:
      return text_[at_] == '-' || is_digit(text_[at_]) ? Type::kNumber : Type::kNone;
  }
}

bool JsonReader::expect(char c, std::string_view what) {
  if (failed_) return false;
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return fault(what);
  ++at_;
  return true;
}

bool JsonReader::begin_object() {
  first_in_container_ = true;
  return expect('{', "expected an object");
}

bool JsonReader::next_key(std::string_view& key) {
  if (failed_) return false;
  skip_space();
  if (at_ < text_.size() && text_[at_] == '}') {
    ++at_;
    first_in_container_ = false;
    return false;
  }
  if (!first_in_container_ && !expect(',', "expected ',' or '}'")) return false;
  first_in_container_ = false;
  return read_string(key) && expect(':', "expected ':'");
}

bool JsonReader::begin_array() {
  first_in_container_ = true;
  return expect('[', "expected an array");
}

bool JsonReader::next_element() {
  if (failed_) return false;
  skip_space();
  if (at_ < text_.size() && text_[at_] == ']') {
    ++at_;
    first_in_container_ = false;
    return false;
  }
  if (!first_in_container_ && !expect(',', "expected ',' or ']'")) return false;
  first_in_container_ = false;
  return true;
}

bool JsonReader::scan_string(std::string_view& raw, bool& escaped) {
  if (!expect('"', "expected a string")) return false;
  const std::size_t begin = at_;
  escaped = false;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      raw = text_.substr(begin, at_ - begin);
      ++at_;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return fault("control character in a string");
    if (c == '\\') {
      escaped = true;
      at_ +=
          2;  // what it means is looked at by unescape; here only a quote must not end the string
      continue;
    }
    const std::size_t length = utf8_length(text_.substr(at_, 4));
    if (length == 0) return fault("a string is not UTF-8");
    at_ += length;
  }
  at_ = text_.size();
  return fault("a string does not end");
}

bool JsonReader::unescape(std::string_view raw, std::string& out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  out.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out.push_back(raw[i]);
      continue;
    }
    if (++i == raw.size()) return fault("a string does not end");
    if (const std::size_t known = kEscapes.find(raw[i]); known != std::string_view::npos) {
      out.push_back(kMeanings[known]);
      continue;
    }
    std::uint32_t code = 0;
    if (raw[i] != 'u' || !hex4(raw, i + 1, code)) return fault("unknown escape in a string");
    i += 4;
    if (code >= 0xd800 && code <= 0xdbff) {
      std::uint32_t low = 0;
      if (raw.substr(i + 1, 2) != "\\u" || !hex4(raw, i + 3, low) || low < 0xdc00 || low > 0xdfff) {
        return fault("half of a surrogate pair in a string");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      i += 6;
    } else if (code >= 0xdc00 && code <= 0xdfff) {
      return fault("half of a surrogate pair in a string");
    }
    append_utf8(code, out);
  }
  return true;
}

bool JsonReader::read_string(std::string_view& value) {
  bool escaped = false;
  if (!scan_string(value, escaped)) return false;
  if (!escaped) return true;
  if (!unescape(value, scratch_)) return false;
  value = scratch_;
  return true;
}

bool JsonReader::match(std::string_view word) {
  if (failed_ || text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::read_bool(bool& value) {
  if (failed_) return false;
  skip_space();
  if (match("true")) {
    value = true;
    return true;
  }
  if (match("false")) {
    value = false;
    return true;
  }
  return fault("expected true or false");
}

bool JsonReader::read_null() {
  if (failed_) return false;
  skip_space();
  return match("null") || fault("expected null");
}

bool JsonReader::scan_number(std::string_view& raw, bool& integral) {
  if (failed_) return false;
  skip_space();
  const std::size_t begin = at_;
  const auto digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - first;
  };
  integral = true;
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  const std::size_t whole = at_;
  if (digits() == 0) return fault("expected a number");
  if (text_[whole] == '0' && at_ - whole > 1) return fault("a number starts with 0");
  if (at_ < text_.size() && text_[at_] == '.') {
    integral = false;
    ++at_;
    if (digits() == 0) return fault("expected digits after '.'");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    integral = false;
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (digits() == 0) return fault("expected digits in the exponent");
  }
  raw = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonReader::read_integer(std::int64_t& value) {
  std::string_view raw;
  bool integral = false;
  if (!scan_number(raw, integral)) return false;
  if (!integral) return fault("expected a number without fraction or exponent");
  const auto [stop, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  return error == std::errc() || fault("a number does not fit 64 bits");
}

bool JsonReader::read_number(double& value) {
  std::string_view raw;
  bool integral = false;
  if (!scan_number(raw, integral)) return false;
  const auto [stop, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  return error == std::errc() || fault("a number does not fit a double");
}

bool JsonReader::skip_value(std::string_view& raw) {
  if (failed_) return false;
  skip_space();
  const std::size_t begin = at_;
  if (!skip_nested(0)) return false;
  raw = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonReader::skip_nested(int depth) {
  if (depth == kMaxDepth) return fault("nested more than 64 levels deep");
  std::string_view ignored;
  bool flag = false;
  switch (peek()) {
    case Type::kObject:
      if (!begin_object()) return false;
      while (next_key(ignored)) {
        if (!skip_nested(depth + 1)) return false;
      }
      return !failed_;
    case Type::kArray:
      if (!begin_array()) return false;
      while (next_element()) {
        if (!skip_nested(depth + 1)) return false;
      }
      return !failed_;
    case Type::kString:
      return scan_string(ignored, flag) && (!flag || unescape(ignored, scratch_));
    case Type::kNumber:
      return scan_number(ignored, flag);
    case Type::kBool:
      return read_bool(flag);
    case Type::kNull:
      return read_null();
    case Type::kNone:
      break;
  }
  return fault("expected a value");
}

bool JsonReader::at_end() {
  if (failed_) return false;
  skip_space();
  return at_ == text_.size();
}

}  // namespace cubist
