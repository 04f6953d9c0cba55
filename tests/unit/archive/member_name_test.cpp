#include "archive/member_name.h"

#include <vector>

#include "support/catch.h"

namespace cubist {
namespace {

TEST_CASE("names that stay below a folder are accepted") {
  for (const char* name : {"a", "a/b.cubin", "a/", "..a/b..", ".hidden", "a b",
                           "Gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x98\x80"}) {
    CAPTURE(name);
    CHECK(unsafe_member_name(name).empty());
  }
}

TEST_CASE("names that could leave a folder or deceive a reader are refused with the reason") {
  struct Case {
    std::string_view name;
    std::string_view why;
  };
  const std::vector<Case> cases = {
      {"", "is empty"},
      {"/a", "is absolute"},
      {"//", "is absolute"},
      {"..", "has a '..' part"},
      {"a/../b", "has a '..' part"},
      {"a/..", "has a '..' part"},
      {"../", "has a '..' part"},
      {"./a", "has a '.' part"},
      {"a//b", "has an empty part"},
      {"a//", "has an empty part"},
      {"a\\..\\b", "has a backslash"},
      {"a\nb", "has a control character"},
      {std::string_view("a\0b", 3), "has a control character"},
      {"a\x7f", "has a control character"},
      {"a\xc2\x9b"
       "31m",
       "has a control character"},
      {"a\xe2\x80\xae"
       "b",
       "has a control character"},
      {"a\xe2\x81\xa6"
       "b",
       "has a control character"},
      {"a\x80", "is not UTF-8"},
      {"a\xc3", "is not UTF-8"},
      {"a\xc3(", "is not UTF-8"},
      {"\xc0\xaf", "is not UTF-8"},              // "/" in two bytes
      {"\xe0\x80\xaf", "is not UTF-8"},          // "/" in three
      {"\xed\xa0\x80", "is not UTF-8"},          // a surrogate
      {"\xf4\x90\x80\x80", "is not UTF-8"},      // above U+10FFFF
      {"\xf8\x88\x80\x80\x80", "is not UTF-8"},  // five bytes
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    CHECK(unsafe_member_name(one.name) == one.why);
  }
  CHECK(unsafe_member_name(std::string(1025, 'a')) == "is longer than 1024 bytes");
  CHECK(unsafe_member_name(std::string(1024, 'a')).empty());
}

TEST_CASE("names are made harmless before they are shown") {
  CHECK(printable_member_name("a/b.cubin") == "a/b.cubin");
  CHECK(printable_member_name("\x1b[2J\n\\") == "\\x1b[2J\\x0a\\x5c");
  CHECK(printable_member_name(std::string(200, 'a')) == std::string(120, 'a') + "...");
}

}  // namespace
}  // namespace cubist
