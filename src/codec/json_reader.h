#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cubist {

/// Reads one JSON text (RFC 8259) from front to back, handing out values as the caller asks for
/// them: no tree, no allocation except for strings with escapes and for messages. Strict: no
/// trailing commas, no comments, no control characters, UTF-8 only, at most 64 levels deep.
///
/// After the first fault every call fails and `status()` says what it was and where.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  enum class Type : std::uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNone };

  /// The type of the next value; kNone at a fault or the end.
  Type peek();

  /// `{`, then next_key until it is false (at `}` or a fault), each followed by reading one value.
  bool begin_object();
  bool next_key(std::string_view& key);
  /// `[`, then next_element until it is false, each time followed by reading one value.
  bool begin_array();
  bool next_element();

  /// The view is valid until the next string is read.
  bool read_string(std::string_view& value);
  bool read_bool(bool& value);
  bool read_null();
  /// A number without fraction or exponent that fits.
  bool read_integer(std::int64_t& value);
  bool read_number(double& value);
  /// Any value, checked and passed over; its text.
  bool skip_value(std::string_view& raw);

  /// Nothing but white space follows.
  bool at_end();
  /// Where reading stands: behind the last value, or, after peek, at the next one.
  std::size_t offset() const { return at_; }

  /// Notes a fault of meaning ("batch: expected an integer") at the current place; false, for
  /// return.
  bool fault(std::string_view what);
  bool failed() const { return failed_; }
  /// "offset 17: ..."; success when nothing failed.
  Status status() const;

 private:
  static constexpr int kMaxDepth = 64;

  void skip_space();
  bool expect(char c, std::string_view what);
  bool scan_string(std::string_view& raw, bool& escaped);
  bool unescape(std::string_view raw, std::string& out);
  bool scan_number(std::string_view& raw, bool& integral);
  bool skip_nested(int depth);
  bool match(std::string_view word);

  std::string_view text_;
  std::size_t at_ = 0;
  bool first_in_container_ = false;
  bool failed_ = false;
  std::size_t fault_at_ = 0;
  std::string fault_;
  std::string scratch_;
};

}  // namespace cubist
