#include <algorithm>
#include <string>
#include <string_view>

#include "check.h"
#include "oci/challenge.h"
#include "oci/credentials.h"
#include "oci/image.h"
#include "oci/index.h"
#include "oci/reference.h"
#include "oci/token.h"

// The first line says what the rest is: "image", "config", "index", "reference", "challenge" (one
// header a line), "credentials", "helper" or "token".

namespace cubist::oci {
namespace {

/// What configs and indexes are held against: two shards of 30 and 50 bytes.
Image image() {
  Image made;
  const auto blob = [](std::string_view type, std::uint8_t seed, std::uint64_t size) {
    Descriptor descriptor{std::string(type), {}, size};
    descriptor.digest.bytes.fill(seed);
    return descriptor;
  };
  made.config = blob(kConfigType, 1, 100);
  made.head = blob(kHeadType, 2, 10);
  made.index = blob(kIndexType, 3, 20);
  made.shards = {blob(kShardType, 0xa0, 30), blob(kShardType, 0xa1, 50)};
  made.tail = blob(kTailType, 4, 10);
  return made;
}

template <class T>
void check_code(const Result<T>& result, StatusCode code) {
  if (!result) FUZZ_CHECK(result.error().code() == code);
}

void read_image(std::string_view text) {
  const auto read = parse_image(text, "image");
  check_code(read, StatusCode::kIntegrity);
  if (!read) return;
  FUZZ_CHECK(!read->shards.empty() && read->shards.size() <= kMaxLayers);
  FUZZ_CHECK(read->file_bytes() >= read->shards.front().size_bytes);
  FUZZ_CHECK(read->file_bytes() <= kMaxBundleBytes);
  const auto again = parse_image(write_image(*read), "again");
  FUZZ_CHECK(again && again->config == read->config && again->head == read->head &&
             again->index == read->index && again->shards == read->shards &&
             again->tail == read->tail);
}

void read_config(std::string_view text) {
  const auto read = parse_config(text, image(), "config");
  check_code(read, StatusCode::kIntegrity);
  if (!read) return;
  FUZZ_CHECK(read->file_bytes == image().file_bytes());
  const auto again = parse_config(write_config(*read), image(), "again");
  FUZZ_CHECK(again && again->identity == read->identity && again->num_kernels == read->num_kernels);
}

void read_index(std::string_view text) {
  const Image made = image();
  const auto read = parse_index(text, made, "index");
  check_code(read, StatusCode::kIntegrity);
  if (!read) return;
  std::uint64_t bytes = 0;
  for (const Place& place : read->kernels) {
    FUZZ_CHECK(place.shard < made.shards.size());
    FUZZ_CHECK(place.offset + place.packed_bytes <= made.shards[place.shard].size_bytes);
    FUZZ_CHECK(read->find(place.sha256) == &place);
    bytes += place.packed_bytes;
  }
  FUZZ_CHECK(bytes == made.shards[0].size_bytes + made.shards[1].size_bytes);
  const auto again = parse_index(write_index(*read, made), made, "again");
  FUZZ_CHECK(again && again->kernels == read->kernels);
}

void read_reference(std::string_view text) {
  const auto read = parse_reference(text);
  check_code(read, StatusCode::kInvalidArgument);
  if (!read) return;
  const auto again = parse_reference(read->text());
  FUZZ_CHECK(again && *again == *read);
  // They become parts of an URL and of file names.
  for (const std::string_view part : {std::string_view(read->host), std::string_view(read->tag),
                                      std::string_view(read->repository)}) {
    FUZZ_CHECK(part.find_first_of(" \t\r\n?#%\\@\"'") == std::string_view::npos);
  }
  FUZZ_CHECK((read->host + read->repository).find("..") == std::string::npos);
  FUZZ_CHECK(!read->host.empty() && !read->repository.empty() && !read->wanted().empty());
  FUZZ_CHECK(read->host.find('/') == std::string::npos && read->tag.find('/') == std::string::npos);
}

void read_challenges(std::string_view text) {
  std::vector<std::string> values;
  while (!text.empty() && values.size() < 8) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    values.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (const Challenge& challenge : parse_challenges(values)) {
    FUZZ_CHECK(!challenge.scheme.empty());
    FUZZ_CHECK(std::none_of(challenge.scheme.begin(), challenge.scheme.end(),
                            [](char c) { return c >= 'A' && c <= 'Z'; }));
    for (const auto& [name, value] : challenge.parameters) FUZZ_CHECK(!name.empty());
  }
}

void read_credentials(std::string_view text) {
  const auto read = parse_credential_file(text, "auth.json");
  check_code(read, StatusCode::kInvalidArgument);
  const Reference wanted{"h", "team/k", "t", std::nullopt};
  if (!read) return;
  const Credentials* entry = find_entry(*read, wanted);
  if (entry != nullptr) FUZZ_CHECK(entry->user.size() + entry->password.size() <= text.size());
}

void read_token(std::string_view text) {
  const auto read = parse_token_answer(text, "server");
  check_code(read, StatusCode::kNetwork);
  FUZZ_CHECK(describe_validity(text, 1'000'000).size() < 100);
  if (!read) return;
  FUZZ_CHECK(read->text.find_first_of(" \r\n") == std::string::npos && !read->text.empty());
  FUZZ_CHECK(read->lifetime.count() >= 0);
  FUZZ_CHECK(describe_validity(read->text, 1'000'000).size() < 100);
}

}  // namespace
}  // namespace cubist::oci

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubist::oci;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view kind = text.substr(0, end);
  const std::string_view rest = text.substr(std::min(end + 1, text.size()));
  if (kind == "image") read_image(rest);
  if (kind == "config") read_config(rest);
  if (kind == "index") read_index(rest);
  if (kind == "reference") read_reference(rest);
  if (kind == "challenge") read_challenges(rest);
  if (kind == "credentials") read_credentials(rest);
  if (kind == "token") read_token(rest);
  if (kind == "helper")
    check_code(parse_helper_answer(rest, "helper"), cubist::StatusCode::kInvalidArgument);
  return 0;
}
