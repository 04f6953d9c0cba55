#include "support/synthetic_cubin.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "support/byte_writer.h"

namespace cubist::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Section {
  std::string name;
  std::uint32_t type = 1;
  Bytes bytes;
  std::uint64_t size_without_bytes = 0;  // type 8
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t entry_size = 0;
  std::size_t offset = 0;
};

Bytes smem_size_code(std::uint32_t smem) {
  ByteWriter code;
  code.u64(0x0000df00ff017b82).u64(0x000ff00000000800);
  code.u64(0x0000e000ff027b82).u64(0x000e220000000a00);
  code.u64(0x00006b00ff0477ac).u64(0x000e220008000a00);
  code.u32(0xff057431).u32(smem).u64(0x000fca00000001ff);
  code.u64(0x0000000502007986).u64(0x001fe2000c101904);
  code.u64(0x000000000000794d).u64(0x000fea0003800000);
  code.u64(0xfffffffc00fc7947).u64(0x000fc0000383ffff);
  while (code.size() < 256) code.u64(0x0000000000007918).u64(0x000fc00000000000);
  return code.bytes;
}

Bytes kernel_info(const SyntheticKernel& kernel) {
  ByteWriter info;
  info.u16(0x3704).u16(4).u32(129);
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    const std::uint32_t size = kernel.params[i];
    const bool large = size >= 1u << 14;
    info.u16(large ? 0x4504 : 0x1704).u16(12).u32(0);
    info.u16(static_cast<std::uint16_t>(i)).u16(static_cast<std::uint16_t>(offset));
    info.u32(large ? size | 0x05000000 : size << 18 | 0x1f000);
    offset += size;
  }
  if (kernel.cluster) {
    info.u16(0x3e01).u16(0);
    info.u16(0x3d04).u16(12);
    for (const std::uint32_t d : *kernel.cluster) info.u32(d);
  }
  if (kernel.two_cta_mma) info.u16(*kernel.two_cta_mma ? 0x5201 : 0x5101).u16(0);
  info.u16(0x1b03).u16(255);
  if (kernel.threads[0] != 0) {
    info.u16(0x0504).u16(12);
    for (const std::uint32_t d : kernel.threads) info.u32(d);
  }
  if (offset != 0) {
    info.u16(0x1903).u16(static_cast<std::uint16_t>(offset));
    info.u16(0x0a04).u16(8).u32(0).u16(0x380).u16(static_cast<std::uint16_t>(offset));
  }
  return info.bytes;
}

Bytes tool_note(SmArch arch, bool release_13) {
  const std::string version = release_13 ? "Cuda compilation tools, release 13.0, V13.0.88"
                                         : "Cuda compilation tools, release 12.9, V12.9.86";
  ByteWriter texts;
  texts.u8(0).text("ptxas").u8(0);
  const auto version_at = static_cast<std::uint32_t>(texts.size());
  texts.text(version).u8(0);
  const auto options_at = static_cast<std::uint32_t>(texts.size());
  texts.text("-v  -arch " + to_string(arch) + " -m 64 ").u8(0);
  texts.align(4);
  ByteWriter note;
  note.u32(12).u32(static_cast<std::uint32_t>(24 + texts.size())).u32(2000);
  note.text("NVIDIA Corp").u8(0);
  note.u32(129).u32(0).u32(1).u32(version_at).u32(0).u32(options_at);
  return note.append(texts.bytes).bytes;
}

std::uint32_t elf_flags(const SyntheticCubin& cubin) {
  const bool specific = cubin.arch.kind == SmArch::Kind::kSpecific;
  const std::uint32_t sm = cubin.arch.sm;
  if (cubin.abi_version == 7) return sm << 16 | 0x500 | (specific ? 0x800u : 0u) | sm;
  return 0x06000002 | sm << 8 | (specific && !cubin.release_13 ? 0x8u : 0u);
}

class Builder {
 public:
  explicit Builder(const SyntheticCubin& cubin) : cubin_(cubin) {}

  CubinImage build() {
    sections_ = {{"", 0, {}, 0, 0, 0, 0, 0},
                 {".shstrtab", 3, {}, 0, 0, 0, 0, 0},
                 {".strtab", 3, {}, 0, 0, 0, 0, 0},
                 {".symtab", 2, {}, 0, 2, 0, 24, 0}};
    if (cubin_.abi_version == 8) add_tool_sections();
    strings_.u8(0);
    symbols_.u64(0).u64(0).u64(0);
    sections_.push_back({".nv.info", 0x70000000, {}, 0, 3, 0, 0, 0});
    const std::size_t info = sections_.size() - 1;
    for (const SyntheticKernel& kernel : cubin_.kernels) {
      if (kernel.smem) add_smem_size_kernel(kernel);
      add_kernel(kernel, Bytes(512, 0x18));
    }
    sections_[info].bytes = registers_.bytes;
    sections_[2].bytes = strings_.bytes;
    sections_[3].bytes = symbols_.bytes;
    return layout();
  }

 private:
  void add_tool_sections() {
    if (cubin_.tool_note) {
      sections_.push_back(
          {".note.nv.tkinfo", 7, tool_note(cubin_.arch, cubin_.release_13), 0, 0, 0, 0, 0});
    }
    ByteWriter compat;
    const bool specific = cubin_.arch.kind == SmArch::Kind::kSpecific;
    if (cubin_.release_13) compat.u16(0x0902).u16(specific ? 1 : 0);
    compat.u16(0x0202).u16(1).u16(0x0703).u16(257).u16(0x0b04).u16(8).u64(9);
    sections_.push_back({".nv.compat", 0x70000086, compat.bytes, 0, 0, 0, 0, 0});
  }

  void add_smem_size_kernel(const SyntheticKernel& of) {
    SyntheticKernel kernel;
    kernel.name = of.name + "GetSmemSize";
    kernel.params = {8};
    kernel.threads = {0, 0, 0};
    kernel.registers = 8;
    add_kernel(kernel, smem_size_code(*of.smem));
  }

  void add_kernel(const SyntheticKernel& kernel, Bytes code) {
    const auto text = static_cast<std::uint32_t>(sections_.size());
    const auto symbol = static_cast<std::uint32_t>(symbols_.size() / 24);
    symbols_.u32(static_cast<std::uint32_t>(strings_.size())).u8(0x12).u8(0x10);
    symbols_.u16(static_cast<std::uint16_t>(text)).u64(0).u64(code.size());
    strings_.text(kernel.name).u8(0);
    registers_.u16(0x2f04).u16(8).u32(symbol).u32(kernel.registers);
    const std::uint64_t reserved = cubin_.arch.sm >= 90 ? 1024 : 0;
    sections_.push_back({".text." + kernel.name, 1, std::move(code), 0, 3, symbol, 0, 0});
    sections_.push_back(
        {".nv.info." + kernel.name, 0x70000000, kernel_info(kernel), 0, 3, text, 0, 0});
    sections_.push_back(
        {".nv.shared." + kernel.name, 8, {}, reserved + kernel.static_smem, 0, text, 0, 0});
  }

  CubinImage layout() {
    CubinImage image;
    std::vector<std::uint32_t> names;
    ByteWriter section_names;
    for (const Section& section : sections_) {
      names.push_back(static_cast<std::uint32_t>(section_names.size()));
      section_names.text(section.name).u8(0);
      image.sections.push_back(section.name);
    }
    sections_[1].bytes = section_names.bytes;
    ByteWriter body;
    body.bytes.resize(64);
    for (Section& section : sections_) {
      body.align(16);
      section.offset = body.size();
      body.append(section.bytes);
    }
    image.section_headers = body.align(8).size();
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Section& section = sections_[i];
      body.u32(names[i]).u32(section.type).u64(0).u64(0).u64(i == 0 ? 0 : section.offset);
      body.u64(section.type == 8 ? section.size_without_bytes : section.bytes.size());
      body.u32(section.link).u32(section.info).u64(1).u64(section.entry_size);
    }
    image.segments = body.size();
    body.u32(6).u32(4).u64(image.segments).u64(0).u64(0).u64(56).u64(56).u64(8);
    image.bytes = std::move(body.bytes);
    put_header(image);
    return image;
  }

  void put_header(CubinImage& image) const {
    ByteWriter header;
    header.u32(0x464c457f).u8(2).u8(1).u8(1).u8(cubin_.abi_version == 7 ? 0x33 : 0x41);
    header.u8(cubin_.abi_version).align(16);
    header.u16(2).u16(190).u32(cubin_.abi_version == 7 ? 129 : 1).u64(0);
    header.u64(image.segments).u64(image.section_headers).u32(elf_flags(cubin_));
    header.u16(64).u16(56).u16(1).u16(64).u16(static_cast<std::uint16_t>(sections_.size())).u16(1);
    std::copy(header.bytes.begin(), header.bytes.end(), image.bytes.begin());
  }

  const SyntheticCubin& cubin_;
  std::vector<Section> sections_;
  ByteWriter strings_;
  ByteWriter symbols_;
  ByteWriter registers_;
};

std::uint64_t read_u64(const Bytes& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, &bytes.at(at + 7) - 7, 8);
  return value;
}

}  // namespace

std::size_t CubinImage::index_of(const std::string& section) const {
  const auto found = std::find(sections.begin(), sections.end(), section);
  if (found == sections.end()) throw std::out_of_range("no section " + section);
  return static_cast<std::size_t>(found - sections.begin());
}

std::size_t CubinImage::header_of(const std::string& section) const {
  return section_headers + 64 * index_of(section);
}

std::size_t CubinImage::bytes_of(const std::string& section) const {
  return read_u64(bytes, header_of(section) + 24);
}

std::size_t CubinImage::symbol_of(const std::string& kernel) const {
  const std::size_t text = index_of(".text." + kernel);
  std::size_t at = bytes_of(".symtab") + 24;
  while ((bytes.at(at + 6) | bytes.at(at + 7) << 8) != static_cast<int>(text)) at += 24;
  return at;
}

std::size_t CubinImage::record_of(const std::string& section, std::uint8_t id) const {
  std::size_t at = bytes_of(section);
  while (bytes.at(at + 1) != id) {
    at += 4;
    if (bytes.at(at - 4) == 4)
      at += static_cast<std::size_t>(bytes.at(at - 2) | bytes.at(at - 1) << 8);
  }
  return at;
}

CubinImage make_cubin(const SyntheticCubin& cubin) { return Builder(cubin).build(); }

}  // namespace cubist::test
