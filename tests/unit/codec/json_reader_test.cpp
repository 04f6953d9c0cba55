#include "codec/json_reader.h"

#include <array>
#include <string>

#include "support/catch.h"

namespace cubist {
namespace {

std::string fault_of(std::string_view text) {
  JsonReader reader(text);
  std::string_view raw;
  if (reader.skip_value(raw) && !reader.at_end()) reader.fault("text after the value");
  const Status status = reader.status();
  return status ? std::string() : status.error().message();
}

}  // namespace

TEST_CASE("good JSON of every kind is passed over whole") {
  for (const std::string_view text :
       {"{}", "[]", "0", "-0", "-12.5e+3", "1E5", "\"\"", "true", "false", "null", " [ 1 , 2 ] ",
        R"({"a":[{"b":null},{}],"c":"d"})", R"("\"\\\/\b\f\n\r\t\u0041\ud83d\ude00")",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""}) {
    INFO(text);
    CHECK(fault_of(text) == "");
  }
}

TEST_CASE("what is no JSON is refused with offset and reason") {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "offset 0: expected a value"},
      {"{", "offset 1: expected a string"},
      {"{\"a\"}", "offset 4: expected ':'"},
      {"{\"a\":1,}", "offset 7: expected a string"},
      {"{\"a\":1 \"b\":2}", "offset 7: expected ',' or '}'"},
      {"[1,]", "offset 3: expected a value"},
      {"[1 2]", "offset 3: expected ',' or ']'"},
      {"01", "a number starts with 0"},
      {"-", "expected a number"},
      {"1.", "digits after '.'"},
      {"1e", "digits in the exponent"},
      {"+1", "expected a value"},
      {"nul", "expected null"},
      {"truth", "expected true or false"},
      {"\"abc", "does not end"},
      {"\"abc\\", "does not end"},
      {"\"\\x\"", "unknown escape"},
      {"\"\\u12g4\"", "unknown escape"},
      {"\"\\ud800\"", "surrogate"},
      {"\"\\udc00\"", "surrogate"},
      {"\"\\ud800\\u0041\"", "surrogate"},
      {"\"\x01\"", "control character"},
      {"\"\xff\"", "not UTF-8"},
      {"\"\xc0\x80\"", "not UTF-8"},
      {"\"\xed\xa0\x80\"", "not UTF-8"},
      {"\"\xf4\x90\x80\x80\"", "not UTF-8"},
      {"1 2", "text after the value"},
      {std::string(100, '[') + std::string(100, ']'), "64 levels"},
  };
  for (const auto& [text, reason] : bad) {
    INFO(text);
    const std::string fault = fault_of(text);
    INFO(fault);
    CHECK(fault.find(reason) != std::string::npos);
    CHECK(fault.rfind("offset ", 0) == 0);
  }
}

TEST_CASE("values come out as they are") {
  JsonReader reader(R"({"n":-42,"x":2.5,"s":"a\u00e9\n","t":true,"l":[1,[],{"k":null}]})");
  std::string_view key;
  std::int64_t n = 0;
  double x = 0;
  std::string_view s;
  bool t = false;
  std::string_view raw;
  REQUIRE(reader.begin_object());
  REQUIRE((reader.next_key(key) && key == "n" && reader.read_integer(n)));
  REQUIRE((reader.next_key(key) && key == "x" && reader.read_number(x)));
  REQUIRE((reader.next_key(key) && key == "s" && reader.read_string(s)));
  CHECK(s == "a\xc3\xa9\n");
  REQUIRE((reader.next_key(key) && key == "t" && reader.read_bool(t)));
  REQUIRE((reader.next_key(key) && key == "l" && reader.skip_value(raw)));
  REQUIRE_FALSE(reader.next_key(key));
  CHECK(reader.status().has_value());
  CHECK(reader.at_end());
  CHECK(n == -42);
  CHECK(x == 2.5);
  CHECK(t);
  CHECK(raw == R"([1,[],{"k":null}])");
}

TEST_CASE("an integer is no fraction and fits") {
  for (const std::string_view text : {"1.0", "1e3", "9223372036854775808", "\"1\""}) {
    JsonReader reader(text);
    std::int64_t value = 0;
    INFO(text);
    CHECK_FALSE(reader.read_integer(value));
    CHECK(reader.failed());
  }
  JsonReader reader("-9223372036854775808");
  std::int64_t value = 0;
  CHECK(reader.read_integer(value));
}

TEST_CASE("after a fault every call fails and the first fault stays") {
  JsonReader reader("[x, 1]");
  std::int64_t value = 0;
  REQUIRE(reader.begin_array());
  REQUIRE(reader.next_element());
  CHECK_FALSE(reader.read_integer(value));
  CHECK_FALSE(reader.next_element());
  CHECK_FALSE(reader.begin_object());
  CHECK(reader.peek() == JsonReader::Type::kNone);
  CHECK(reader.status().error().message().find("offset 1: expected a number") == 0);
}

}  // namespace cubist
