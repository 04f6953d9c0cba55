#include "manifest/index_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/byte_reader.h"
#include "base/checksum.h"
#include "base/prefault.h"
#include "base/threads.h"

namespace cubist {
namespace {

// Below this a thread costs more than it saves. Unit: bytes.
constexpr std::size_t kWorthAThread = 1 << 20;
constexpr std::uint32_t kChunkRows = 1024;

[[nodiscard]] tl::unexpected<Error> broken(std::string_view what) {
  return tl::unexpected<Error>(Error(StatusCode::kIntegrity, std::string(what)));
}

/// Tells those who wait for it at the end of a block, also of one that memory ran out in.
class RoomMade {
 public:
  explicit RoomMade(std::atomic<bool>& flag) : flag_(flag) {}
  ~RoomMade() {
    flag_ = true;
    flag_.notify_all();
  }
  RoomMade(const RoomMade&) = delete;
  RoomMade& operator=(const RoomMade&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace

IndexReader::IndexReader(std::span<const std::uint8_t> bytes, Lender lender)
    : bytes_(bytes), lender_(std::move(lender)) {}

Result<Manifest> IndexReader::read() {
  Status room;
  on_threads(bytes_.size() >= kWorthAThread ? 2 : 1, [&](unsigned thread) {
    if (thread == 0) {
      const RoomMade told(has_room_);
      room = make_room();
    } else {
      sum_up();
      has_room_.wait(false);
    }
    read_chunks();
    sum_up();
  });
  if (checksum_ != ByteReader(bytes_).read<std::uint64_t>(kIndexChecksumAt)) {
    return broken("its checksum is another");
  }
  if (!room) return tl::unexpected<Error>(std::move(room.error()));
  if (!rows_make_sense_) return broken("a row of it makes no sense");
  return std::move(manifest_);
}

Status IndexReader::make_room() {
  RowReader head(bytes_.data() + kIndexNameAt, bytes_);
  head.text(manifest_.name).text(manifest_.description).text(manifest_.expires);
  head.number(manifest_.serial).number(packs_).number(sources_).number(kernels_);
  // Below 2^64 by far: counts have 32 bits.
  source_at_ = kIndexHeadBytes + std::uint64_t{packs_} * kPackRowBytes;
  kernel_at_ = source_at_ + std::uint64_t{sources_} * kSourceRowBytes;
  const std::uint64_t rows_end = kernel_at_ + std::uint64_t{kernels_} * kKernelRowBytes;
  if (!head.ok() || rows_end > bytes_.size()) return broken("its rows reach past its end");
  manifest_.packs.reserve(packs_);
  chunks_.reserve(kernels_ / kChunkRows + packs_);
  for (std::uint32_t i = 0; i < packs_; ++i) {
    const std::uint64_t at = kIndexHeadBytes + std::uint64_t{i} * kPackRowBytes;
    if (!make_room_in(manifest_.packs.emplace_back(), at))
      return broken("a row of it makes no sense");
  }
  if (sources_ != 0 || kernels_ != 0) return broken("it has rows that belong to no pack");
  return {};
}

bool IndexReader::make_room_in(Pack& pack, std::uint64_t at) {
  RowReader row(bytes_.data() + at, bytes_);
  std::uint32_t sources = 0;
  std::uint32_t kernels = 0;
  read_pack_row(row, pack, sources, kernels);
  if (!row.ok() || sources > sources_ || kernels > kernels_) return false;
  sources_ -= sources;
  kernels_ -= kernels;
  pack.lender = lender_;
  for (std::uint32_t i = 0; i < sources; ++i, source_at_ += kSourceRowBytes) {
    RowReader source(bytes_.data() + source_at_, bytes_);
    read_source_row(source, pack.sources.emplace_back());
    if (!source.ok()) return false;
  }
  // Once for all, so that no record moves: one that does owns its texts.
  pack.kernels.reserve(kernels);
  prefault(pack.kernels.data(), kernels * sizeof(KernelRecord));
  pack.kernels.resize(kernels);
  for (std::uint32_t first = 0; first < kernels; first += kChunkRows) {
    chunks_.push_back({pack.kernels.data() + first,
                       bytes_.data() + kernel_at_ + std::uint64_t{first} * kKernelRowBytes,
                       std::min(kChunkRows, kernels - first)});
  }
  kernel_at_ += std::uint64_t{kernels} * kKernelRowBytes;
  return true;
}

void IndexReader::read_chunks() {
  for (std::size_t i = 0; (i = next_chunk_.fetch_add(1)) < chunks_.size();) {
    const Chunk& chunk = chunks_[i];
    const std::uint8_t* row = chunk.rows;
    bool ok = true;
    for (std::uint32_t k = 0; k < chunk.count && ok; ++k, row += kKernelRowBytes) {
      ok = read_kernel_row(RowReader(row, bytes_), chunk.records[k], limits_);
    }
    if (!ok) rows_make_sense_ = false;
  }
}

void IndexReader::sum_up() {
  if (!is_summed_up_.exchange(true)) checksum_ = checksum64(bytes_.subspan(kIndexCheckedFrom));
}

}  // namespace cubist
