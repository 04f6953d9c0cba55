#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace cubist {

/// Appends JSON to a string; the caller keeps brackets balanced. Only what plans and problems need.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin(char bracket) {
    comma();
    out_.push_back(bracket);
    fresh_ = true;
    return *this;
  }
  JsonWriter& end(char bracket) {
    out_.push_back(bracket);
    fresh_ = false;
    return *this;
  }
  JsonWriter& key(std::string_view name) {
    comma();
    out_.push_back('"');
    out_.append(name);  // names are ours: nothing in them needs an escape
    out_.append("\":");
    fresh_ = true;
    return *this;
  }

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(std::integral auto number) { return digits(number); }
  /// Shortest text that reads back as the same number.
  JsonWriter& value(double number) { return digits(number); }
  JsonWriter& value(float number) { return digits(number); }
  /// JSON that somebody made already.
  JsonWriter& raw(std::string_view text) {
    comma();
    out_.append(text);
    return *this;
  }

  template <class T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  template <class Numbers>
  JsonWriter& list(std::string_view name, const Numbers& numbers) {
    key(name).begin('[');
    for (const auto& number : numbers) value(number);
    return end(']');
  }

 private:
  void comma() {
    if (!fresh_) out_.push_back(',');
    fresh_ = false;
  }
  template <class T>
  JsonWriter& digits(T number) {
    comma();
    char buffer[40];
    const auto result = std::to_chars(buffer, buffer + sizeof(buffer), number);
    out_.append(buffer, result.ptr);
    return *this;
  }

  std::string& out_;
  bool fresh_ = true;
};

}  // namespace cubist
