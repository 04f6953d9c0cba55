#include "oci/cut.h"

#include "bundle/entry.h"
#include "oci/index.h"
#include "support/catch.h"
#include "unit/bundle/made_bundle.h"

using cubist::oci::Cut;
using cubist::oci::cut_bundle;
using cubist::oci::Descriptor;
using cubist::oci::digest_text;
namespace bundle = cubist::bundle;

namespace {

struct Fixture {
  bundle::test::MadeBundle made = bundle::test::make_bundle();
  bundle::Bundle opened = bundle::test::open(made.file).value();
  std::shared_ptr<cubist::RandomAccess> file = cubist::memory_access("made", made.file);

  Cut cut(std::uint64_t shard_bytes) {
    auto done = cut_bundle(opened, *file, 2, nullptr, shard_bytes);
    REQUIRE(done);
    return *done;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "the pieces joined are the file, whatever the size of shards") {
  const std::uint64_t shard_bytes = GENERATE(1, 200, 5000, 32 << 20);
  const Cut cut = this->cut(shard_bytes);
  std::uint64_t at = 0;
  for (const Cut::Piece& piece : cut.pieces) {
    CHECK(piece.offset == at);
    const std::span<const std::uint8_t> bytes(made.file.data() + at,
                                              static_cast<std::size_t>(piece.blob.size_bytes));
    CHECK(cubist::sha256(bytes) == piece.blob.digest);
    at += piece.blob.size_bytes;
  }
  CHECK(at == made.file.size());
  CHECK(cut.image.file_bytes() == made.file.size());
  if (shard_bytes == 1) CHECK(cut.image.shards.size() == opened.description().kernels.size());
  if (shard_bytes == 32 << 20) CHECK(cut.image.shards.size() == 1);
}

TEST_CASE_METHOD(Fixture, "every kernel unpacks from where the index says, and from nowhere else") {
  const Cut cut = this->cut(200);
  const auto index = cubist::oci::parse_index(cut.index_text, cut.image, "index");
  REQUIRE(index);
  REQUIRE(index->kernels.size() == opened.description().kernels.size());
  for (const bundle::Kernel& kernel : opened.description().kernels) {
    const cubist::oci::Place* place = index->find(kernel.sha256);
    REQUIRE(place != nullptr);
    CHECK(place->size_bytes == kernel.size_bytes);
    const std::uint64_t shard = cut.pieces[place->shard + 1].offset;
    const auto entry = std::span(made.file).subspan(static_cast<std::size_t>(shard + place->offset),
                                                    static_cast<std::size_t>(place->packed_bytes));
    CHECK(bundle::unpack_entry(entry, kernel, "entry"));
    CHECK_FALSE(bundle::unpack_entry(entry.first(entry.size() - 1), kernel, "entry"));
  }
}

TEST_CASE_METHOD(Fixture,
                 "the texts describe each other, and the same file gives the same digest") {
  const Cut cut = this->cut(200);
  const auto image = cubist::oci::parse_image(cut.image_text, "m");
  REQUIRE(image);
  const auto config = cubist::oci::parse_config(cut.config_text, *image, "c");
  REQUIRE(config);
  CHECK(config->identity == opened.identity());
  CHECK(config->num_kernels == opened.description().kernels.size());
  CHECK(cut.digest == this->cut(200).digest);
  CHECK(cut.digest != this->cut(32 << 20).digest);
}

TEST_CASE_METHOD(Fixture, "cutting ends when it is asked to") {
  std::atomic<bool> cancel = true;
  CHECK(cut_bundle(opened, *file, 2, &cancel).error().code() == cubist::StatusCode::kInterrupted);
}
