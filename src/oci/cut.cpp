#include "oci/cut.h"

#include <algorithm>

#include "oci/bytes.h"
#include "oci/index.h"
#include "oci/work.h"

namespace cubist::oci {
namespace {

constexpr std::size_t kHashBlockBytes = 1 << 20;

Descriptor describe(std::string_view type, const std::string& text) {
  return {std::string(type), sha256(bytes_of(text)), text.size()};
}

Result<Sha256Digest> hash_piece(RandomAccess& file, const Cut::Piece& piece,
                                const std::atomic<bool>* cancel) {
  std::vector<std::uint8_t> block(kHashBlockBytes);
  Sha256 hasher;
  for (std::uint64_t at = 0; at < piece.blob.size_bytes;) {
    if (cancel != nullptr && *cancel) return fail(StatusCode::kInterrupted, "interrupted");
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(kHashBlockBytes, piece.blob.size_bytes - at));
    const std::span<std::uint8_t> part(block.data(), length);
    CUBIST_RETURN_IF_ERROR(file.read(piece.offset + at, part));
    hasher.update(part);
    at += length;
  }
  return hasher.finish();
}

/// Head, shards at borders of entries, tail; the kernels' places by the way.
std::vector<Cut::Piece> pieces_of(const bundle::Bundle& bundle, std::uint64_t shard_bytes,
                                  Index& index) {
  std::vector<Cut::Piece> pieces;
  const auto add = [&](std::string_view type, std::uint64_t offset, std::uint64_t end) {
    pieces.push_back({offset, {std::string(type), {}, end - offset}});
  };
  add(kHeadType, 0, bundle.kernels_offset());
  std::uint64_t begin = bundle.kernels_offset();
  std::uint32_t shard = 0;
  const auto& kernels = bundle.description().kernels;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const ZipMember& member = bundle.kernel_member(i);
    if (member.limit_offset - begin > shard_bytes && member.header_offset != begin) {
      add(kShardType, begin, member.header_offset);
      begin = member.header_offset;
      ++shard;
    }
    index.kernels.push_back({kernels[i].sha256, shard, member.header_offset - begin,
                             member.limit_offset - member.header_offset, kernels[i].size_bytes});
  }
  add(kShardType, begin, bundle.directory_offset());
  add(kTailType, bundle.directory_offset(), bundle.file_bytes());
  return pieces;
}

}  // namespace

Result<Cut> cut_bundle(const bundle::Bundle& bundle, RandomAccess& file, unsigned threads,
                       const std::atomic<bool>* cancel, std::uint64_t shard_bytes) {
  if (bundle.description().kernels.empty()) {
    return fail(StatusCode::kInvalidArgument, "'{}' has no kernels", bundle.file_name());
  }
  Cut cut;
  Index index;
  cut.pieces = pieces_of(bundle, shard_bytes, index);
  if (cut.pieces.size() >= kMaxLayers) {
    return fail(StatusCode::kInvalidArgument, "'{}' would have {} layers, a bundle may have {}",
                bundle.file_name(), cut.pieces.size() + 1, kMaxLayers);
  }
  const auto hash = [&](std::size_t i, unsigned) -> Status {
    CUBIST_ASSIGN_OR_RETURN(cut.pieces[i].blob.digest, hash_piece(file, cut.pieces[i], cancel));
    return {};
  };
  CUBIST_RETURN_IF_ERROR(in_parallel(cut.pieces.size(), threads, hash));
  cut.image.head = cut.pieces.front().blob;
  cut.image.tail = cut.pieces.back().blob;
  for (std::size_t i = 1; i + 1 < cut.pieces.size(); ++i) {
    cut.image.shards.push_back(cut.pieces[i].blob);
  }
  cut.image.title = bundle.description().name;
  cut.index_text = write_index(index, cut.image);
  cut.image.index = describe(kIndexType, cut.index_text);
  cut.config_text = write_config({bundle.description().name, bundle.identity(), bundle.file_bytes(),
                                  index.kernels.size(), cut.image.index.digest});
  cut.image.config = describe(kConfigType, cut.config_text);
  cut.image_text = write_image(cut.image);
  cut.digest = sha256(bytes_of(cut.image_text));
  return cut;
}

}  // namespace cubist::oci
