#include "base/secrets.h"

#include "base/file.h"
#include "support/catch.h"

namespace cubist {

TEST_CASE("a value is shown without user information, query and fragment, however wrong it is") {
  struct Case {
    const char* value;
    const char* shown;
  };
  const Case cases[] = {
      {"https://u:sekrit@h/x", "https://***@h/x"},
      {"http://u:sekrit@h/ b", "http://***@h/ b"},
      {"http://u:sek rit@h/", "http://***@h/"},
      {"http://u:sek/rit@h/x", "http://***@h/x"},
      {"http://u:p@ss@h", "http://***@h"},
      {"sekrit@h.example", "sekrit@h.example"},
      {"u:sekrit@h/x?token=sekrit", "***@h/x?..."},
      {"https://h/x?token=sekrit more", "https://h/x?..."},
      {"https://h/x#sekrit", "https://h/x#..."},
      {"https://h?token=u@sekrit", "https://h?..."},
      {"oci://localhost:5000/team/kernels@sha256:ab",
       "oci://localhost:5000/team/kernels@sha256:ab"},
      {"oci://u:sekrit@h/team", "oci://***@h/team"},
      {"https://[::1]:80/a@b", "https://[::1]:80/a@b"},
      {"https://h/a@b", "https://h/a@b"},
      {"pip:flashinfer-cubin==0.6.13", "pip:flashinfer-cubin==0.6.13"},
      {"/srv/a?b#c", "/srv/a?b#c"},
      {"/srv/a:b@c", "/srv/a:b@c"},
      {"", ""},
  };
  for (const Case& one : cases) {
    INFO(one.value);
    CHECK(shown_value(one.value) == one.shown);
  }
}

TEST_CASE("texts have no user information and no query of any URL in them") {
  CHECK(without_credentials("see 'https://u:p@h/x?token=q', http://t@h2:80/y and a@b") ==
        "see 'https://***@h/x?...', http://***@h2:80/y and a@b");
}

TEST_CASE("a text to be pasted names no server") {
  CHECK(without_servers("see 'https://u:p@h/x?q' and oci://h2/y, ok") ==
        "see 'https://...' and oci://... ok");
  CHECK(without_servers("'***@h/x' and 'https://***@h' end") == "'...' and 'https://...' end");
  CHECK(without_servers("no server") == "no server");
}

TEST_CASE("an error about a URL in the place of a path has no credentials in it") {
  const auto opened = open_regular_file("https://u:sekrit@h.invalid/x?token=sekrit");
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message().find("sekrit") == std::string::npos);
  CHECK(opened.error().message().find("https://***@h.invalid/x") != std::string::npos);
}

}  // namespace cubist
