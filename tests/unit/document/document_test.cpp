#include "document/document.h"

#include <string>

#include "base/file.h"
#include "document/json_text.h"
#include "document/pointer_line.h"
#include "support/catch.h"
#include "support/scratch.h"

using cubist::Document;
using cubist::DocumentNode;

namespace {

std::string complaint_of(const std::string& text) {
  const auto document = Document::parse(text, "f.json");
  if (!document) return document.error().message();
  const DocumentNode root = document->root();
  root.allow_only({"name", "count", "list", "on"});
  std::string name;
  std::int32_t count = 0;
  std::vector<std::string> list;
  bool on = false;
  root.required("name").read(name);
  root.member("count").read_integer(count, 1, 100);
  root.member("list").read_strings(list);
  root.member("on").read(on);
  const auto status = document->status();
  return status ? "" : status.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a document gives what it holds") {
  const auto document = Document::parse(
      R"({"name":"a","n":5,"x":2.5,"list":["p","q"],"on":true,"none":null,"o":{"k":1}})", "f");
  REQUIRE(document);
  const DocumentNode root = document->root();
  std::string name;
  std::int64_t n = 0;
  double x = 0;
  std::vector<std::string> list;
  bool on = false;
  CHECK(root.member("name").read(name));
  CHECK(root.member("n").read_integer(n, 0, 9));
  CHECK(root.member("x").read_number(x));
  CHECK(root.member("list").read_strings(list));
  CHECK(root.member("on").read(on));
  CHECK_FALSE(root.member("none").present());
  CHECK_FALSE(root.member("missing").read(name));
  CHECK(root.member("o").keys() == std::vector<std::string>{"k"});
  CHECK(name == "a");
  CHECK(n == 5);
  CHECK(x == 2.5);
  CHECK(list == std::vector<std::string>{"p", "q"});
  CHECK(on);
  CHECK(document->status());
}

TEST_CASE("complaints name the file, the place and what was expected") {
  CHECK(complaint_of(R"({"name":"a","count":7})").empty());
  CHECK(complaint_of(R"({"count":7})") == "f.json: /name: the key is missing");
  CHECK(complaint_of(R"({"name":3})") == "f.json: /name: found a number, expected a string");
  CHECK(contains(complaint_of(R"({"name":"a","count":0})"), "/count: is 0; it must be 1..100"));
  CHECK(contains(complaint_of(R"({"name":"a","count":1.5})"), "expected a whole number"));
  CHECK(contains(complaint_of(R"({"name":"a","count":99999999999999999999})"), "/count"));
  CHECK(
      contains(complaint_of(R"({"name":"a","count":18446744073709551615})"), "it must be 1..100"));
  CHECK(contains(complaint_of(R"({"name":"a","list":["x",3]})"), "/list/1: found a number"));
  CHECK(contains(complaint_of(R"({"name":"a","list":["x",null]})"), "/list/1: found null"));
  CHECK(contains(complaint_of(R"({"name":"a","on":1})"), "/on: found a number"));
  CHECK(contains(complaint_of(R"({"name":"a","extra":1})"), "unknown key 'extra'"));
  CHECK(contains(complaint_of("[1]"), "(document): found an array, expected an object"));
}

TEST_CASE("null for a known key is a complaint, not a value left out") {
  CHECK(complaint_of(R"({"name":"a","count":null})") ==
        "f.json: /count: found null; give it a value, or leave it out");
  CHECK(contains(complaint_of(R"({"name":"a","other":null})"), "unknown key 'other'"));
}

TEST_CASE("complaints about a text of several lines name the line") {
  const std::string text = R"({
  "a/b": [1, {"k": "}]\\\"{", "n": [[], {}]},
    -2.5e3],
  "o": {
    "\u0078": true,
    "y": 3
  }
}
)";
  using cubist::line_of_pointer;
  CHECK(line_of_pointer(text, "") == 1);
  CHECK(line_of_pointer(text, "/a~1b") == 2);
  CHECK(line_of_pointer(text, "/a~1b/1/n/1") == 2);
  CHECK(line_of_pointer(text, "/a~1b/2") == 3);
  CHECK(line_of_pointer(text, "/o/x") == 5);
  CHECK(line_of_pointer(text, "/o/y") == 6);
  CHECK(line_of_pointer(text, "/o/missing") == 4);
  CHECK(line_of_pointer(text, "/a~1b/7") == 2);
  CHECK(line_of_pointer(text, "/o/y/deeper") == 6);
  const auto document = Document::parse(text, "f.json").value();
  document.root().member("o").member("y").complain("is odd");
  document.root().member("o").required("z");
  REQUIRE(document.complaints().size() == 2);
  CHECK(document.complaints()[0].message() == "f.json:6: /o/y: is odd");
  CHECK(document.complaints()[1].message() == "f.json:4: /o/z: the key is missing");
  CHECK(document.status().error().message() == "f.json:6: /o/y: is odd");
}

TEST_CASE("what is no JSON, repeats a key or nests without end is refused with its place") {
  CHECK(contains(complaint_of("{\"name\":\n  oops}"), "line 2"));
  CHECK(contains(complaint_of(""), "not a JSON text"));
  CHECK(contains(complaint_of(std::string("{}\0{", 4)), "byte 3: a NUL"));
  CHECK(contains(complaint_of(std::string("{}\0", 3)), "byte 3: a NUL"));
  CHECK(contains(complaint_of(R"({"name":"a","name":"b"})"), "'name' occurs twice"));
  CHECK(contains(complaint_of(std::string(100, '[')), "deeper than 64"));
  CHECK(contains(complaint_of("{\"name\":\"\xff\xfe\"}"), "f.json"));
}

TEST_CASE("a file that is missing or too large is refused") {
  const cubist::test::Scratch scratch;
  const auto missing = Document::load(scratch / "none.json");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == cubist::StatusCode::kNotFound);
  REQUIRE(cubist::write_file_atomically(scratch / "a.json", std::string_view("{\"a\": 1}")));
  CHECK(Document::load(scratch / "a.json"));
  CHECK_FALSE(Document::load(scratch / "a.json", 4));
}

TEST_CASE("texts from outside are shown without their control characters") {
  CHECK(cubist::in_quotes("a\x1b[2Jb") == "'a\\x1b[2Jb'");
  CHECK(cubist::in_quotes(std::string(200, 'x')).size() < 100);
  CHECK(cubist::json_string("a\"b\n") == "\"a\\\"b\\n\"");
}
