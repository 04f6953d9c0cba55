#include "archive/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace cubist {
namespace {

// What zlib and zip take by default: level 9 needs twice the time for about 1 % less.
constexpr int kLevel = 6;
constexpr int kMemoryLevel = 8;

class DeflateStream {
 public:
  DeflateStream() {
    // A negative window: raw deflate, without zlib's own header and checksum.
    if (deflateInit2(&stream_, kLevel, Z_DEFLATED, -MAX_WBITS, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~DeflateStream() { deflateEnd(&stream_); }
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;

  z_stream* get() { return &stream_; }

 private:
  z_stream stream_{};
};

/// Hands a span of any size to zlib, which counts in 32 bits.
uInt next_chunk(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

}  // namespace

std::vector<std::uint8_t> deflate_bytes(std::span<const std::uint8_t> bytes) {
  DeflateStream deflater;
  z_stream& stream = *deflater.get();
  std::vector<std::uint8_t> out(deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = const_cast<Bytef*>(bytes.data());  // zlib's type lacks const; it does not write
  stream.next_out = out.data();
  std::size_t in_left = bytes.size();
  std::size_t out_left = out.size();  // enough by deflateBound's promise, so each call moves on
  int code = Z_OK;
  while (code == Z_OK) {
    const uInt in_given = stream.avail_in = next_chunk(in_left);
    const uInt out_given = stream.avail_out = next_chunk(out_left);
    code = deflate(&stream, in_given == in_left ? Z_FINISH : Z_NO_FLUSH);
    in_left -= in_given - stream.avail_in;
    out_left -= out_given - stream.avail_out;
  }
  out.resize(out.size() - out_left);
  return out;
}

std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(::crc32_z(0, nullptr, 0), bytes.data(), bytes.size()));
}

}  // namespace cubist
