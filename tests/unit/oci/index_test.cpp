#include "oci/index.h"

#include "support/catch.h"

using cubist::Sha256Digest;
using cubist::StatusCode;
using namespace cubist::oci;  // NOLINT(google-build-using-namespace): its names are all it is about

namespace {

Sha256Digest digest(std::uint8_t seed) {
  Sha256Digest made;
  made.bytes.fill(seed);
  return made;
}

/// Two shards of 30 and 50 bytes with three kernels.
struct Made {
  Image image;
  Index index;

  Made() {
    image.shards = {{std::string(kShardType), digest(0xa0), 30},
                    {std::string(kShardType), digest(0xa1), 50}};
    index.kernels = {
        {digest(1), 0, 0, 10, 100}, {digest(2), 0, 10, 20, 200}, {digest(3), 1, 0, 50, 50}};
  }
};

void check_refused(const Index& index, const Image& image, const std::string& words) {
  const auto read = parse_index(write_index(index, image), Made().image, "i");
  REQUIRE_FALSE(read);
  CHECK(read.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(read.error().message(), Catch::Contains(words));
}

}  // namespace

TEST_CASE("an index is read as it was written, and finds kernels by digest") {
  const Made made;
  const auto read = parse_index(write_index(made.index, made.image), made.image, "i");
  REQUIRE(read);
  CHECK(read->kernels == made.index.kernels);
  REQUIRE(read->find(digest(2)) != nullptr);
  CHECK(read->find(digest(2))->offset == 10);
  CHECK(read->find(digest(0)) == nullptr);
  CHECK(read->find(digest(9)) == nullptr);
}

TEST_CASE("an index fills its shards from end to end, or is refused") {
  const Made made;
  const auto changed = [&](std::size_t i, Place place) {
    Index index = made.index;
    index.kernels[i] = place;
    return index;
  };
  check_refused(changed(0, {digest(1), 0, 1, 10, 100}), made.image, "kernel 0 does not lie");
  check_refused(changed(1, {digest(2), 0, 10, 21, 200}), made.image, "kernel 1 does not lie");
  check_refused(changed(1, {digest(2), 0, 10, 19, 200}), made.image, "kernel 2 does not lie");
  check_refused(changed(1, {digest(2), 1, 10, 20, 200}), made.image, "kernel 1 does not lie");
  check_refused(changed(2, {digest(3), 1, 0, 51, 50}), made.image, "kernel 2 does not lie");
  check_refused(changed(2, {digest(3), 1, 0, 49, 50}), made.image, "do not fill the shards");
  check_refused(changed(2, {digest(2), 1, 0, 50, 50}), made.image, "not in the order of digests");
  check_refused(changed(2, {digest(3), 8000, 0, 50, 50}), made.image, "kernel 2 does not lie");
  Index fewer = made.index;
  fewer.kernels.pop_back();
  check_refused(fewer, made.image, "do not fill the shards");
  check_refused({}, made.image, "do not fill the shards");
  Image other = made.image;
  other.shards[1].digest = digest(7);
  check_refused(made.index, other, "not the shards of the manifest");
}

TEST_CASE("an index that is no index is refused by place") {
  const Made made;
  const std::string text = write_index(made.index, made.image);
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& words) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const auto read = parse_index(changed, made.image, "i");
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message(), Catch::Contains(words));
  };
  refused("cubist.bundle.index", "x", "/schema");
  refused("\"schema_version\":1", "\"schema_version\":9", "/schema_version");
  refused(",0,0,10,100]", ",0,0,10]", "/kernels/0");
  refused(",0,0,10,100]", ",0,0,10,-1]", "/kernels/0");
  refused(",0,0,10,100]", ",0,0,10,1.5]", "/kernels/0");
  refused("[\"0101", "[\"01zz", "/kernels/0");
  refused("\"kernels\"", "\"kernel\"", "/kernels");
}
