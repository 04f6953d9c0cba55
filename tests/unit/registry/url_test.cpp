#include "registry/url.h"

#include "support/catch.h"

using cubist::parse_url;
using cubist::resolve_url;
using cubist::StatusCode;
using cubist::url_below;
using cubist::without_credentials;

TEST_CASE("a URL is taken apart, and its credentials are out of the text") {
  const auto url = parse_url("https://me:s%40cret@Mirror.Example:8443/a/b?x=1#frag");
  REQUIRE(url);
  CHECK(url->text == "https://mirror.example:8443/a/b?x=1");
  CHECK(url->shown() == "https://mirror.example:8443/a/b?...");
  CHECK(url->user == "me");
  CHECK(url->password == "s@cret");
  CHECK(url->port == "8443");
  CHECK(parse_url("http://h/")->port == "80");
  CHECK(parse_url("https://[::1]/")->host == "[::1]");
}

TEST_CASE("what is not http or https is refused, without showing a password") {
  for (const char* text :
       {"ftp://u:secret@h/x", "file:///etc/passwd", "http://", "//h/x", "", "http://u:secret@/x",
        "ht tp://u:secret@h", "http://u:secret@h:99999/"}) {
    const auto url = parse_url(text);
    REQUIRE_FALSE(url);
    CHECK(url.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(url.error().message(), !Catch::Contains("secret"));
  }
}

TEST_CASE("a reference is followed as a browser would, and keeps credentials at home") {
  const auto base = parse_url("https://me:pw@index.example/simple/pack/").value();
  CHECK(resolve_url(base, "../../files/a.whl")->text == "https://index.example/files/a.whl");
  CHECK(resolve_url(base, "/files/a.whl#sha256=00")->text == "https://index.example/files/a.whl");
  CHECK(resolve_url(base, "a.whl")->user == "me");
  CHECK(resolve_url(base, "https://index.example/x")->password == "pw");
  CHECK(resolve_url(base, "https://files.example/x")->user.empty());
  CHECK(resolve_url(base, "http://index.example/x")->user.empty());
  CHECK(resolve_url(base, "https://index.example:444/x")->user.empty());
  CHECK_FALSE(resolve_url(base, "file:///etc/passwd"));
}

TEST_CASE("a path below a folder is escaped segment by segment") {
  const auto folder = parse_url("http://u:p@h/tree").value();
  CHECK(url_below(folder, "a/b c.cubin")->text == "http://h/tree/a/b%20c.cubin");
  CHECK(url_below(folder, "x+y?#%.cubin")->text == "http://h/tree/x%2By%3F%23%25.cubin");
  CHECK(url_below(folder, "a")->user == "u");
  CHECK(url_below(parse_url("http://h").value(), "a")->text == "http://h/a");
}

TEST_CASE("credentials are blotted out of any text") {
  CHECK(without_credentials("no URL in here, a@b") == "no URL in here, a@b");
  CHECK(without_credentials("see https://u:p@h/x and http://t@h2:80/y, ok") ==
        "see https://***@h/x and http://***@h2:80/y, ok");
  CHECK(without_credentials("https://u:p@ss@h") == "https://***@h");
  CHECK(without_credentials("http://h/a@b") == "http://h/a@b");
}
