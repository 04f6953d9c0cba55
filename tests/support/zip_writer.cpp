#include "support/zip_writer.h"

#include <zlib.h>

#include "support/byte_writer.h"

namespace cubist::test {
namespace {

struct Packed {
  std::string data;
  std::uint32_t crc = 0;
  std::size_t offset = 0;
};

std::string zip64_extra(std::uint64_t size, std::uint64_t compressed) {
  ByteWriter extra;
  extra.u16(1).u16(16).u64(size).u64(compressed);
  return {extra.bytes.begin(), extra.bytes.end()};
}

void put_sizes(ByteWriter& out, const ZipInput& file, const Packed& packed, bool known) {
  out.u32(known ? packed.crc : 0);
  out.u32(file.zip64 ? 0xffffffff : known ? static_cast<std::uint32_t>(packed.data.size()) : 0);
  out.u32(file.zip64 ? 0xffffffff : known ? static_cast<std::uint32_t>(file.data.size()) : 0);
}

void put_member(ByteWriter& out, const ZipInput& file, Packed& packed) {
  packed.offset = out.size();
  const std::string extra = file.zip64 ? zip64_extra(file.data.size(), packed.data.size()) : "";
  out.u32(0x04034b50).u16(20).u16(file.descriptor ? 8 : 0).u16(file.deflate ? 8 : 0).u32(0);
  put_sizes(out, file, packed, !file.descriptor);
  out.u16(static_cast<std::uint16_t>(file.name.size()));
  out.u16(static_cast<std::uint16_t>(extra.size()));
  out.text(file.name).text(extra).text(packed.data);
  if (file.descriptor) {
    out.u32(0x08074b50).u32(packed.crc);
    out.u32(static_cast<std::uint32_t>(packed.data.size()));
    out.u32(static_cast<std::uint32_t>(file.data.size()));
  }
}

void put_entry(ByteWriter& out, const ZipInput& file, const Packed& packed) {
  const std::string extra = file.zip64 ? zip64_extra(file.data.size(), packed.data.size()) : "";
  out.u32(0x02014b50).u16(20).u16(20).u16(file.descriptor ? 8 : 0).u16(file.deflate ? 8 : 0).u32(0);
  put_sizes(out, file, packed, true);
  out.u16(static_cast<std::uint16_t>(file.name.size()));
  out.u16(static_cast<std::uint16_t>(extra.size()));
  out.u16(0).u16(0).u16(0).u32(0).u32(static_cast<std::uint32_t>(packed.offset));
  out.text(file.name).text(extra);
}

}  // namespace

std::string deflated(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

ZipImage make_zip(const std::vector<ZipInput>& files, const ZipOptions& options) {
  ZipImage image;
  ByteWriter out;
  std::vector<Packed> all;
  for (const ZipInput& file : files) {
    Packed packed;
    packed.data = file.deflate ? deflated(file.data) : file.data;
    packed.crc = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(file.data.data()), file.data.size()));
    put_member(out, file, packed);
    image.locals.push_back(packed.offset);
    all.push_back(packed);
  }
  const std::size_t directory = out.size();
  for (std::size_t i = 0; i < files.size(); ++i) {
    image.entries.push_back(out.size());
    put_entry(out, files[i], all[i]);
  }
  const std::size_t size = out.size() - directory;
  image.zip64_end = out.size();
  if (options.zip64_end) {
    out.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0);
    out.u64(files.size()).u64(files.size()).u64(size).u64(directory);
    image.zip64_locator = out.size();
    out.u32(0x07064b50).u32(0).u64(image.zip64_end).u32(1);
  }
  image.end = out.size();
  const bool wide = options.zip64_end;
  const auto count = wide ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(files.size());
  out.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
  out.u32(wide ? 0xffffffff : static_cast<std::uint32_t>(size));
  out.u32(wide ? 0xffffffff : static_cast<std::uint32_t>(directory));
  out.u16(static_cast<std::uint16_t>(options.comment.size())).text(options.comment);
  image.bytes = std::move(out.bytes);
  return image;
}

}  // namespace cubist::test
