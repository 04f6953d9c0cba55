#include <filesystem>

#include "registry/pip_index.h"
#include "registry/pip_requirement.h"
#include "registry/pip_settings.h"
#include "registry/subprocess.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/made_release.h"
#include "support/scratch.h"

using cubist::ask_pip;
using cubist::choose_wheel;
using cubist::find_pip_wheel;
using cubist::HttpClient;
using cubist::HttpProfile;
using cubist::IndexFile;
using cubist::LocalWheel;
using cubist::parse_index_html;
using cubist::parse_index_json;
using cubist::parse_pip_requirement;
using cubist::parse_pip_settings;
using cubist::PipSettings;
using cubist::run_process;
using cubist::StatusCode;
using cubist::test::Environment;
using cubist::test::Scratch;

namespace {

const IndexFile* choose(const std::vector<std::string>& names, const char* requirement) {
  static std::vector<IndexFile> files;
  files.clear();
  for (const std::string& name : names) files.push_back({name, name, {}, std::nullopt});
  return choose_wheel(files, parse_pip_requirement(requirement).value());
}

std::string chosen(const std::vector<std::string>& names, const char* requirement) {
  const IndexFile* file = choose(names, requirement);
  return file == nullptr ? "none" : file->filename;
}

/// A python of our own making in place of the real one.
std::string fake_python(const Scratch& scratch, const std::string& script) {
  const std::string text = "#!/bin/sh\n" + script + "\n";
  cubist::test::write_bytes(scratch / "python", {text.begin(), text.end()});
  std::filesystem::permissions(scratch / "python", std::filesystem::perms::all);
  return scratch / "python";
}

}  // namespace

TEST_CASE("a requirement is a name and one version, normalised as indexes do") {
  CHECK(parse_pip_requirement("Flash_Infer..cubin==0.6.13")->name == "flash-infer-cubin");
  CHECK(parse_pip_requirement("a==1.2.0+cu130")->version == "1.2.0+cu130");
  for (const char* text : {"", "a", "==1", "a==", "a>=1", "a==1;x", "a/b==1", "a==1 --index-url x",
                           "../a==1", "a==1/../2", "-r==1x y", "___==1"}) {
    const auto parsed = parse_pip_requirement(text);
    INFO(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("the wheel for any platform is taken, and versions compare as pip compares them") {
  CHECK(chosen({"p-1.0-py3-none-any.whl", "p-1.1-py3-none-any.whl"}, "p==1.1") ==
        "p-1.1-py3-none-any.whl");
  CHECK(chosen({"p-1.0.tar.gz", "p-1.0-cp311-cp311-linux_x86_64.whl", "p-1.0-py3-none-any.whl"},
               "p==1.0") == "p-1.0-py3-none-any.whl");
  CHECK(chosen({"p-1.0-cp311-cp311-linux_x86_64.whl"}, "P==1.0.0") ==
        "p-1.0-cp311-cp311-linux_x86_64.whl");
  CHECK(chosen({"p-1.0rc1-py3-none-any.whl", "p-1.0.1-py3-none-any.whl"}, "p==1.0") == "none");
  CHECK(chosen({"q-1.0-py3-none-any.whl", "p-q-1.0-py3-none-any.whl"}, "p==1.0") == "none");
  CHECK(chosen({"My_Pack-1.0-1-py3-none-any.whl"}, "my-pack==1.0") ==
        "My_Pack-1.0-1-py3-none-any.whl");
}

TEST_CASE("a local version suffix is ignored where the requirement has none") {
  CHECK(chosen({"p-1.2.0+cu130-py3-none-any.whl"}, "p==1.2.0") == "p-1.2.0+cu130-py3-none-any.whl");
  CHECK(chosen({"p-1.2.0+cu130-py3-none-any.whl", "p-1.2.0-py3-none-any.whl"}, "p==1.2.0") ==
        "p-1.2.0-py3-none-any.whl");
  CHECK(chosen({"p-1.2.0+cu130-py3-none-any.whl"}, "p==1.2.0+cu129") == "none");
  CHECK(chosen({"p-1.2.0-py3-none-any.whl"}, "p==1.2.0+cu130") == "none");
}

TEST_CASE("the JSON form of an index is read; entries that make no sense are passed over") {
  const auto files = parse_index_json(
      R"({"files":[{"filename":"p-1-py3-none-any.whl","url":"../p.whl","size":7,
           "hashes":{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}},
          {"filename":7},{"filename":"x"},3,{"filename":"q","url":"u","hashes":{"sha256":"short"}}]})");
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK(files->at(0).url == "../p.whl");
  CHECK(files->at(0).size_bytes == 7u);
  CHECK(files->at(0).sha256.size() == 64);
  CHECK(files->at(1).sha256.empty());
  for (const char* text : {"", "[]", "{}", "{\"files\":{}}", "<html>", "{\"files\":[}"}) {
    CHECK(parse_index_json(text).error().code() == StatusCode::kNetwork);
  }
}

TEST_CASE("the HTML form of an index is read as its links") {
  const auto files = parse_index_html(
      "<!DOCTYPE html><html><body><A data-x='1' HREF=\"x\">no</A>\n"
      "<a href=\"../../f/p-1%2Bcu-py3-none-any.whl?a=1&amp;b=2#sha256="
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\" data-y>p</a><abbr "
      "href='z'>"
      "<a\nhref='q.whl'>q</a><a href=unquoted></a><a href=\"open");
  REQUIRE(files.size() == 2);
  CHECK(files[0].filename == "p-1+cu-py3-none-any.whl");
  CHECK(files[0].url.starts_with("../../f/p-1%2Bcu-py3-none-any.whl?a=1&b=2#"));
  CHECK(files[0].sha256.starts_with("e3b0"));
  CHECK(files[1].filename == "q.whl");
}

TEST_CASE("pip's answer is read field by field, and no-index means no index") {
  const auto settings = parse_pip_settings(
      R"({"index_url":"https://a/simple","extra_index_urls":["https://b/simple"],"find_links":["/w"],
          "cert":"/c","client_cert":"","proxy":"http://p:1","trusted_hosts":["h:8"],"no_index":false})");
  REQUIRE(settings);
  CHECK(settings->index_urls == std::vector<std::string>{"https://a/simple", "https://b/simple"});
  CHECK(settings->find_links == std::vector<std::string>{"/w"});
  const auto profile = profile_for_pip(*settings, HttpProfile());
  CHECK(profile->ca_file == "/c");
  CHECK(profile->proxy == "http://p:1");
  CHECK(profile->trusted_hosts == std::vector<std::string>{"h:8"});
  CHECK(parse_pip_settings(R"({"index_url":"https://a","no_index":true})")->index_urls.empty());
  CHECK(parse_pip_settings("nonsense").error().code() == StatusCode::kIo);
}

TEST_CASE("the user's own pip is asked, with its variables and its built-in default") {
  const auto python = run_process({"python3", "-m", "pip", "--version"}, std::chrono::seconds(60));
  if (!python || python->exit_code != 0) {
    WARN("python3 with pip is not installed: not tested");
    return;
  }
  const Environment environment(Environment::Values{{"PIP_CONFIG_FILE", "/dev/null"},
                                                    {"PIP_INDEX_URL", std::nullopt},
                                                    {"PIP_EXTRA_INDEX_URL", std::nullopt},
                                                    {"CUBIST_PYTHON", std::nullopt}});
  const auto by_default = ask_pip();
  REQUIRE(by_default);
  REQUIRE(by_default->index_urls.size() == 1);
  CHECK(by_default->index_urls[0].starts_with("https://"));

  ::setenv("PIP_INDEX_URL", "https://user:secret@mirror.example/simple", 1);
  ::setenv("PIP_EXTRA_INDEX_URL", "https://one.example/s https://two.example/s", 1);
  const auto configured = ask_pip();
  REQUIRE(configured);
  CHECK(configured->index_urls ==
        std::vector<std::string>{"https://user:secret@mirror.example/simple",
                                 "https://one.example/s", "https://two.example/s"});
}

TEST_CASE("a python that is missing, has no pip or fails is named with what to do") {
  const Scratch scratch;
  const auto ask = [&](const std::string& python) {
    const Environment environment(Environment::Values{{"CUBIST_PYTHON", python}});
    const auto answer = ask_pip();
    REQUIRE_FALSE(answer);
    return answer.error();
  };
  CHECK(ask(scratch / "none").code() == StatusCode::kNotFound);
  CHECK_THAT(ask(scratch / "none").message(),
             Catch::Contains("cannot run") && Catch::Contains("CUBIST_PYTHON"));
  const auto no_pip = ask(fake_python(scratch, "exit 3"));
  CHECK(no_pip.code() == StatusCode::kNotFound);
  CHECK_THAT(no_pip.message(), Catch::Contains("has no pip") && Catch::Contains("python3-pip"));
  const auto broken =
      ask(fake_python(scratch, "echo 'Error: bad https://u:secret@h/ config' >&2; exit 1"));
  CHECK(broken.code() == StatusCode::kIo);
  CHECK_THAT(broken.message(), Catch::Contains("Error: bad https://***@h/ config"));
  CHECK(ask(fake_python(scratch, "echo nonsense")).code() == StatusCode::kIo);
}

TEST_CASE("find-links folders and folder indexes come before any request") {
  const Scratch scratch;
  cubist::test::write_bytes(scratch / "links/my_pack-1.0-py3-none-any.whl", {1});
  cubist::test::write_bytes(scratch / "index/my-pack/my_pack-2.0-py3-none-any.whl", {1});
  PipSettings settings;
  settings.find_links = {scratch / "absent", "file://" + (scratch / "links")};
  settings.index_urls = {"file://" + (scratch / "index")};
  HttpClient client;
  const auto one = find_pip_wheel(client, "My.Pack==1.0", HttpProfile(), settings);
  REQUIRE(one);
  CHECK(std::get<LocalWheel>(*one).path == scratch / "links/my_pack-1.0-py3-none-any.whl");
  CHECK(
      std::get<LocalWheel>(find_pip_wheel(client, "my-pack==2.0", HttpProfile(), settings).value())
          .path == scratch / "index/my-pack/my_pack-2.0-py3-none-any.whl");
  const auto none = find_pip_wheel(client, "my-pack==3.0", HttpProfile(), settings);
  CHECK(none.error().code() == StatusCode::kNotFound);
  CHECK(client.counters().requests == 0);
}

TEST_CASE("a program's output comes back, and one that hangs or talks without end is stopped") {
  const auto ran =
      run_process({"sh", "-c", "echo out; echo err >&2; exit 5"}, std::chrono::seconds(20));
  REQUIRE(ran);
  CHECK(ran->exit_code == 5);
  CHECK(ran->out == "out\n");
  CHECK(ran->err == "err\n");
  CHECK(run_process({"sh", "-c", "cat"}, std::chrono::seconds(20))->out.empty());
  CHECK(run_process({"/no/such/program"}, std::chrono::seconds(1)).error().code() ==
        StatusCode::kNotFound);
  CHECK(run_process({"sleep", "60"}, std::chrono::milliseconds(200)).error().code() ==
        StatusCode::kIo);
  CHECK(run_process({"sh", "-c", "while :; do echo x; done"}, std::chrono::seconds(30))
            .error()
            .code() == StatusCode::kIo);
}
