#include "oci/index.h"

#include <algorithm>

#include "document/document.h"
#include "document/schema_head.h"

namespace cubist::oci {
namespace {

constexpr std::string_view kIndexSchema = "cubist.bundle.index";

void check_head(const DocumentNode& root, const Image& image) {
  read_schema(root, kIndexSchema, Index::kSchemaVersion);
  std::vector<std::string> shards;
  root.required("shards").read_strings(shards);
  const auto same = [](const std::string& text, const Descriptor& shard) {
    return text == digest_text(shard.digest);
  };
  if (!std::equal(shards.begin(), shards.end(), image.shards.begin(), image.shards.end(), same)) {
    root.member("shards").complain("these are not the shards of the manifest");
  }
}

bool read_place(const DocumentNode& node, Place& place) {
  const auto fields = node.items();
  constexpr std::size_t kFields = 5;
  std::string digest;
  std::int64_t numbers[kFields - 1] = {};
  bool good = fields.size() == kFields && fields[0].read(digest);
  for (std::size_t i = 1; good && i < kFields; ++i) {
    good = fields[i].read_integer(numbers[i - 1], 0,
                                  i == 1 ? static_cast<std::int64_t>(kMaxLayers)
                                         : static_cast<std::int64_t>(kMaxBundleBytes));
  }
  const auto parsed = Sha256Digest::parse(digest);
  if (!good || !parsed) {
    node.complain("expected [ digest, shard, offset, packed bytes, size ]");
    return false;
  }
  place = {*parsed, static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint64_t>(numbers[1]),
           static_cast<std::uint64_t>(numbers[2]), static_cast<std::uint64_t>(numbers[3])};
  return true;
}

/// Entries lie one behind the other, from the first byte of the first shard to the last of the
/// last.
void check_places(const DocumentNode& node, const std::vector<Place>& places, const Image& image) {
  std::size_t shard = 0;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (shard < image.shards.size() && at == image.shards[shard].size_bytes) {
      ++shard;
      at = 0;
    }
    const bool fits = shard < image.shards.size() && place.shard == shard && place.offset == at &&
                      place.packed_bytes <= image.shards[shard].size_bytes - at;
    if (!fits) {
      return node.complain(fmt::format("kernel {} does not lie behind the one before it", i));
    }
    at += place.packed_bytes;
    if (i != 0 && !(places[i - 1].sha256 < place.sha256)) {
      return node.complain(fmt::format("kernel {} is not in the order of digests", i));
    }
  }
  if (shard + 1 != image.shards.size() || at != image.shards[shard].size_bytes) {
    node.complain("the kernels do not fill the shards");
  }
}

}  // namespace

const Place* Index::find(const Sha256Digest& digest) const {
  const auto found =
      std::lower_bound(kernels.begin(), kernels.end(), digest,
                       [](const Place& place, const Sha256Digest& d) { return place.sha256 < d; });
  return found == kernels.end() || found->sha256 != digest ? nullptr : &*found;
}

std::string write_index(const Index& index, const Image& image) {
  std::string text = fmt::format(R"({{"schema":"{}","schema_version":{},"shards":[)", kIndexSchema,
                                 Index::kSchemaVersion);
  for (std::size_t i = 0; i < image.shards.size(); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ",", digest_text(image.shards[i].digest));
  }
  text += "],\"kernels\":[";
  for (std::size_t i = 0; i < index.kernels.size(); ++i) {
    const Place& place = index.kernels[i];
    text += fmt::format("{}\n[\"{}\",{},{},{},{}]", i == 0 ? "" : ",", place.sha256.hex(),
                        place.shard, place.offset, place.packed_bytes, place.size_bytes);
  }
  return text + "]}\n";
}

Result<Index> parse_index(std::string_view text, const Image& image, const std::string& name) {
  const auto document = Document::parse(text, name);
  if (!document) return fail(StatusCode::kIntegrity, "{}", document.error().message());
  const DocumentNode root = document->root();
  if (!root.is_object()) return fail(StatusCode::kIntegrity, "{}: not a JSON object", name);
  check_head(root, image);
  Index index;
  const DocumentNode kernels = root.required("kernels");
  for (const DocumentNode& node : kernels.items()) {
    if (!read_place(node, index.kernels.emplace_back())) break;
  }
  check_places(kernels, index.kernels, image);
  if (const Status status = document->status(); !status) {
    return fail(StatusCode::kIntegrity, "{}", status.error().message());
  }
  return index;
}

}  // namespace cubist::oci
