#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/lent_string.h"
#include "base/result.h"
#include "manifest/index_rows.h"
#include "manifest/manifest.h"

namespace cubist {

/// Where the parts of a kernel index lie (drawn in kernel_index.cpp). Unit: bytes.
inline constexpr std::size_t kIndexChecksumAt = 24;
inline constexpr std::size_t kIndexCheckedFrom = 32;
inline constexpr std::size_t kIndexNameAt = 128;
inline constexpr std::size_t kIndexHeadBytes = 176;

/// Takes a kernel index, whose head has been looked at, apart. Of a large one, one thread makes
/// room for the kernels while another sums up the bytes; then both read rows.
class IndexReader {
 public:
  /// bytes   kIndexHeadBytes or more, the last of them a NUL
  /// lender  keeps `bytes`: the texts of what is read are borrowed from them
  IndexReader(std::span<const std::uint8_t> bytes, Lender lender);

  /// Once. Reading is as good as the checks of each row; what it makes of rotten ones is thrown
  /// away.
  /// errors  kIntegrity: a checksum, or rows, that make no sense
  Result<Manifest> read();

 private:
  /// Some of one pack's kernels.
  struct Chunk {
    KernelRecord* records;
    const std::uint8_t* rows;
    std::uint32_t count;
  };

  Status make_room();
  bool make_room_in(Pack& pack, std::uint64_t at);
  void read_chunks();
  void sum_up();

  std::span<const std::uint8_t> bytes_;
  Lender lender_;
  const TraitLimits limits_ = trait_limits();
  Manifest manifest_;
  std::uint32_t packs_ = 0;
  std::uint32_t sources_ = 0;  ///< rows no pack has claimed yet
  std::uint32_t kernels_ = 0;
  std::uint64_t source_at_ = 0;
  std::uint64_t kernel_at_ = 0;

  std::vector<Chunk> chunks_;
  std::atomic<bool> has_room_ = false;  ///< chunks_ is as it stays
  std::atomic<std::size_t> next_chunk_ = 0;
  std::atomic<bool> rows_make_sense_ = true;
  std::atomic<bool> is_summed_up_ = false;  ///< or somebody is at it
  std::uint64_t checksum_ = 0;
};

}  // namespace cubist
