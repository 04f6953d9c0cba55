#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/lent_string.h"
#include "manifest/manifest.h"

namespace cubist {

// Rows of a kernel index (kernel_index.cpp), field after field without gaps:
//
//   pack    name, version, license (8 each) | family, revision, param_layout (1 each), 0 (1)
//           | sources, kernels (4 each) | min_driver (4) | 0 (8)
//   source  location, prefix (8 each) | kind (1), 0 (7)
//   kernel  sha256 (32) | size (8) | name, path (8 each) | KernelTraits as it lies in memory, 0
//           between its members
inline constexpr std::size_t kPackRowBytes = 48;
inline constexpr std::size_t kSourceRowBytes = 24;
inline constexpr std::uint32_t kKernelRowBytes = 56 + sizeof(KernelTraits);
inline constexpr std::uint32_t kNumTraitMembers = 38;

/// Rows one behind the other, then the texts they name.
class RowWriter {
 public:
  /// row_bytes  of all rows together: the first text lies there
  explicit RowWriter(std::size_t row_bytes) : row_bytes_(row_bytes) { rows_.reserve(row_bytes); }

  RowWriter& bytes(std::span<const std::uint8_t> bytes) {
    const std::size_t at = rows_.size();
    rows_.resize(at + bytes.size());
    std::memcpy(rows_.data() + at, bytes.data(), bytes.size());
    return *this;
  }
  template <class Number>
  RowWriter& number(Number value) {
    std::uint8_t raw[sizeof(value)];
    std::memcpy(raw, &value, sizeof(value));
    return bytes(raw);
  }
  RowWriter& text(std::string_view text);
  RowWriter& zeros(std::size_t count) {
    rows_.resize(rows_.size() + count);
    return *this;
  }
  std::size_t position() const { return rows_.size(); }
  std::vector<std::uint8_t> take();

 private:
  std::size_t row_bytes_;
  std::vector<std::uint8_t> rows_;
  std::string texts_;
};

/// Reads one row that lies inside `file`. What makes no sense is noted and read as nothing.
class RowReader {
 public:
  RowReader(const std::uint8_t* row, std::span<const std::uint8_t> file) : at_(row), file_(file) {}

  /// Whether everything made sense so far.
  bool ok() const { return ok_; }

  template <class Number>
  RowReader& number(Number& out) {
    static_assert(std::is_integral_v<Number> && !std::is_same_v<Number, bool>);
    std::memcpy(&out, at_, sizeof(out));
    at_ += sizeof(out);
    return *this;
  }
  /// last  the highest value that means something
  template <class Enum>
  RowReader& word(Enum& out, Enum last) {
    const std::uint8_t value = *at_++;
    const bool known = value <= static_cast<std::uint8_t>(last);
    ok_ &= known;
    out = known ? static_cast<Enum>(value) : Enum{};
    return *this;
  }
  RowReader& digest(Sha256Digest& out) {
    std::memcpy(out.bytes.data(), at_, out.bytes.size());
    at_ += out.bytes.size();
    return *this;
  }
  RowReader& text(std::string& out) {
    out = next_text();
    return *this;
  }
  RowReader& text(LentString& out) {
    out.lend(next_text());
    return *this;
  }
  /// Into an object of plain data, whose bytes are each at most its `limits`.
  template <class Plain>
  RowReader& plain(Plain& out, const std::array<std::uint8_t, sizeof(Plain)>& limits) {
    static_assert(std::is_trivially_copyable_v<Plain>);
    bool known = true;
    for (std::size_t i = 0; i < sizeof(Plain); ++i) known &= at_[i] <= limits[i];
    if (known) std::memcpy(&out, at_, sizeof(Plain));
    ok_ &= known;
    at_ += sizeof(Plain);
    return *this;
  }
  RowReader& skip(std::size_t count) {
    at_ += count;
    return *this;
  }

 private:
  /// Inside the file, whose last byte is a NUL; "" if it is not. That a NUL follows each text is
  /// the writer's to keep: looking would fetch every line of the largest part of the file once
  /// more.
  std::string_view next_text() {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    number(offset).number(length);
    const std::uint64_t end = std::uint64_t{offset} + length;
    if (end >= file_.size()) {
      ok_ = false;
      return "";
    }
    return {reinterpret_cast<const char*>(file_.data()) + offset, length};
  }

  const std::uint8_t* at_;
  std::span<const std::uint8_t> file_;
  bool ok_ = true;
};

void write_pack_row(RowWriter& out, const Pack& pack);
void write_source_row(RowWriter& out, const Source& source);
void write_kernel_row(RowWriter& out, const KernelRecord& record);

/// Of a pack: how many of the next sources and kernels are its own.
void read_pack_row(RowReader& row, Pack& pack, std::uint32_t& sources, std::uint32_t& kernels);
void read_source_row(RowReader& row, Source& source);
/// What each byte of KernelTraits may be at most: of words and flags the last that means something.
using TraitLimits = std::array<std::uint8_t, sizeof(KernelTraits)>;
TraitLimits trait_limits();
/// Of the many. By value: a reader that nobody else sees stays in registers.
bool read_kernel_row(RowReader row, KernelRecord& record, const TraitLimits& limits);

}  // namespace cubist
