#include "importer/meta_table.h"

#include <string>
#include <vector>

#include "support/catch.h"

namespace cubist {
namespace {

TEST_CASE("a table is read with the members of the struct that belongs to it") {
  const std::string header = R"(/* licence { struct } */
#pragma once
#define IGNORED struct Two { \
  int b; };
#include <x>
namespace a { // struct Line { int x; };
struct Forward;
struct One
{
    Data_type mType;
    const unsigned char* mCubin;   // with a "quote
    int mSize = 4;
};
extern const One elsewhere[];
static const One sOnes[] = {
{ DATA_TYPE_E4M3, nullptr, 0x10 },
{ Data_type::DATA_TYPE_BF16, nullptr, 12u },
};
struct Two { const char* name; };
inline constexpr Two sTwos[3] = { {"a"}, {"b"}, {"c"} };
} // namespace a
)";
  const auto tables = parse_meta_tables(header, "h");
  REQUIRE(tables);
  REQUIRE(tables->size() == 2);
  const MetaTable& one = (*tables)[0];
  CHECK(one.struct_name == "One");
  CHECK(one.name == "sOnes");
  CHECK(one.columns == std::vector<std::string_view>{"mType", "mCubin", "mSize"});
  REQUIRE(one.num_rows() == 2);
  CHECK(one.value(0, 0).text == "DATA_TYPE_E4M3");
  CHECK(one.value(0, 1).text == "nullptr");
  CHECK(one.value(0, 2).text == "0x10");
  CHECK(one.value(1, 0).text == "DATA_TYPE_BF16");
  CHECK(one.value(1, 2).kind == MetaValue::Kind::kNumber);
  CHECK(one.lines == std::vector<std::uint32_t>{16, 17});
  const MetaTable& two = (*tables)[1];
  CHECK(two.num_rows() == 3);
  CHECK(two.value(2, 0).text == "c");
  CHECK(two.value(2, 0).kind == MetaValue::Kind::kString);
}

TEST_CASE("text without tables has none") {
  for (const char* text :
       {"", "int x;", "struct A; struct B {}; enum { x };", "struct A { int x; };",
        "struct A { int x; }; A one = {1};", "struct A { int x; }; A f();",
        "struct { int x; } anonymous;", "}}}} ]]]", "struct struct struct"}) {
    const auto tables = parse_meta_tables(text, "h");
    INFO(text);
    REQUIRE(tables);
    CHECK(tables->empty());
  }
}

struct Liar {
  std::string header;
  const char* message;
};

TEST_CASE("each broken header is refused with its line and its reason") {
  const std::string decl = "struct A { int x; const char* s; };\n";
  const std::vector<Liar> liars = {
      {decl + "A t[] = {\n{1, \"a\"},\n{2}};",
       "h:4: table t: row 1 has 1 values, struct A has 2 members"},
      {decl + "A t[] = {\n{1, \"a\", 3}};",
       "h:3: table t: row 0 has over 2 values, struct A has 2 members"},
      {decl + "A t[] = {{}};", "h:2: table t: row 0 has 0 values, struct A has 2 members"},
      {decl + "A t[] = {{1 \"a\"}};", "h:2: table t: row 0 has 1 values, struct A has 2 members"},
      {decl + "A t[] = {{1, \"a\" 3}};", "h:2: table t: '}' expected at the end of row 0"},
      {decl + "A t[] = {{1, {2}}};", "h:2: table t: a constant expected in row 0, found '{'"},
      {decl + "A t[] = {{-1, \"a\"}};", "h:2: table t: a constant expected in row 0, found '-'"},
      {decl + "A t[] = {{1,",
       "h:2: table t: a constant expected in row 0, found the end of the text"},
      {decl + "A t[] = {{1, X::}};", "h:2: a name expected behind '::'"},
      {decl + "A t[] = {1};", "h:2: table t: '{' of row 0 expected, found '1'"},
      {decl + "A t[] = {{1, \"a\"} {2, \"b\"}};", "h:2: table t: ',' or '}' expected behind row 0"},
      {decl + "A t[] = {\n{1, \"a\"},\n", "h:4: the text ends inside table t, behind 1 rows"},
      {decl + "A t[] = 7;", "h:2: '{' expected: table t begins"},
      {decl + "A t[3] = {{1, \"a\"}};", "h:2: table t is declared with 3 rows and has 1"},
      {decl + "A t[", "h:2: the text ends inside '['"},
      {decl + "A t[] = {{1, \"a}};\n", "h:2: the line ends inside a string"},
      {decl + "A t[] = {{1, \"a\\\"\"}};\n", "h:2: a string with an escape"},
      {decl + decl, "h:2: struct A is declared twice"},
      {"struct A { int x; /* ", "h:1: the text ends inside this comment"},
      {"struct A { int x;\n", "h:1: the text ends inside struct A"},
      {"struct A { int f() { return 1; } ", "h:1: the text ends inside struct A"},
      {"struct A { int f() { ", "h:1: this '{' is never closed"},
      {"struct A { int f() { return 1; } int x; };\nA t[] = {{1}};",
       "h:2: table t: struct A has more than plain members"},
      {"struct A { int x[2]; };\nA t[] = {{1}};",
       "h:2: table t: struct A has more than plain members"},
      {"struct A { };\nA t[] = {{1}};", "h:2: table t: struct A has more than plain members"},
      {std::string("int x;\n\0", 8), "h:2: byte 0x00: this is no C++ text"},
      {"<\x7f"
       "ELF",
       "h:1: byte 0x7f: this is no C++ text"},
  };
  for (const Liar& liar : liars) {
    const auto tables = parse_meta_tables(liar.header, "h");
    INFO(liar.header);
    REQUIRE_FALSE(tables);
    CHECK(tables.error().code() == StatusCode::kManifestInvalid);
    CHECK(tables.error().message().substr(0, std::string(liar.message).size()) == liar.message);
  }
}

TEST_CASE("structs and members have a limit far above anything published") {
  std::string members = "struct A {";
  for (int i = 0; i < 257; ++i) members += " int m" + std::to_string(i) + ";";
  const auto wide = parse_meta_tables(members + "};", "h");
  REQUIRE_FALSE(wide);
  CHECK(wide.error().message() == "h:1: struct A has more than 256 members");

  std::string structs;
  for (int i = 0; i < 65; ++i) structs += "struct S" + std::to_string(i) + " { int x; };";
  const auto many = parse_meta_tables(structs, "h");
  REQUIRE_FALSE(many);
  CHECK(many.error().message() == "h:1: more than 64 structs in one header");
}

}  // namespace
}  // namespace cubist
