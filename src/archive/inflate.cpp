#include "archive/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace cubist {
namespace {

/// Hands a span of any size to zlib, which counts in 32 bits.
uInt next_chunk(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

class InflateStream {
 public:
  InflateStream() {
    // A negative window: raw deflate, without zlib's own header and checksum.
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~InflateStream() { inflateEnd(&stream_); }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

std::string_view describe(InflateOutcome outcome) {
  switch (outcome) {
    case InflateOutcome::kOk:
      return "ok";
    case InflateOutcome::kBroken:
      return "its deflate stream is broken";
    case InflateOutcome::kTooShort:
      return "it inflates to fewer bytes than the directory says";
    case InflateOutcome::kTooLong:
      return "it inflates to more bytes than the directory says";
    case InflateOutcome::kUnfinished:
      return "its deflate stream is cut off";
    case InflateOutcome::kTrailing:
      return "bytes follow the end of its deflate stream";
  }
  return "unknown";
}

InflateOutcome inflate_exactly(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) {
  InflateStream inflater;
  z_stream& stream = *inflater.get();
  std::uint8_t overflow = 0;  // room for one byte too many, to tell "full" from "too long"
  std::size_t in_left = in.size();
  std::size_t out_left = out.size();
  stream.next_in = const_cast<Bytef*>(in.data());  // zlib's type lacks const; it does not write
  stream.next_out = out.data();
  while (true) {
    const uInt in_given = stream.avail_in = next_chunk(in_left);
    const bool full = out_left == 0;
    if (full) stream.next_out = &overflow;
    const uInt out_given = stream.avail_out = full ? 1 : next_chunk(out_left);
    const int code = inflate(&stream, Z_NO_FLUSH);
    in_left -= in_given - stream.avail_in;
    const uInt produced = out_given - stream.avail_out;
    if (full && produced != 0) return InflateOutcome::kTooLong;
    out_left -= produced;
    if (code == Z_STREAM_END) break;
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_BUF_ERROR) return InflateOutcome::kBroken;
    const bool moved = produced != 0 || in_given != stream.avail_in;
    if (!moved) return InflateOutcome::kUnfinished;
  }
  if (out_left != 0) return InflateOutcome::kTooShort;
  return in_left == 0 ? InflateOutcome::kOk : InflateOutcome::kTrailing;
}

}  // namespace cubist
