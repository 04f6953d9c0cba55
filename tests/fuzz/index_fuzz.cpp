#include <string_view>

#include "check.h"
#include "registry/pip_requirement.h"
#include "registry/url.h"

// The page of a package index: JSON, HTML, and the choice of a wheel from either.

namespace cubist {
namespace {

void check_files(const std::vector<IndexFile>& files) {
  const PipRequirement requirement = parse_pip_requirement("pack==1.0").value();
  const IndexFile* wheel = choose_wheel(files, requirement);
  if (wheel == nullptr) return;
  FUZZ_CHECK(wheel >= files.data() && wheel < files.data() + files.size());
  FUZZ_CHECK(wheel->filename.ends_with(".whl"));
  FUZZ_CHECK(wheel->sha256.empty() || wheel->sha256.size() == 64);
  FUZZ_CHECK(!wheel_versions(files, requirement).empty());
  const Url base = parse_url("https://user:secret@index.example/simple/pack/").value();
  const auto url = resolve_url(base, wheel->url);
  if (!url) return;
  FUZZ_CHECK(url->scheme == "https" || url->scheme == "http");
  if (!url->same_origin(base)) FUZZ_CHECK(url->password != "secret");
}

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto files = cubist::parse_index_json(text)) cubist::check_files(*files);
  cubist::check_files(cubist::parse_index_html(text));
  return 0;
}
