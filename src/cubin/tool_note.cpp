#include "cubin/tool_note.h"

#include "base/byte_reader.h"

// .note.nv.tkinfo is one ELF note, all numbers u32:
//
//    0 length of the owner, 12    12 "NVIDIA Corp\0"
//    4 length of the rest         24 the rest:  0 format version   8 tool       16 build
//    8 kind, 2000                               4 object file     12 version    20 options
//                                              24 texts, NUL-terminated; 4 to 20 are offsets into
//                                              them

namespace cubist {
namespace {

constexpr std::uint32_t kToolInfo = 2000;
constexpr std::uint64_t kOwnerBytes = 12;
constexpr std::uint64_t kNoteHeaderBytes = 12 + kOwnerBytes;
constexpr std::uint64_t kFieldsBytes = 24;

}  // namespace

std::string_view ToolNote::release() const {
  constexpr std::string_view kBefore = "release ";
  const std::size_t at = version.find(kBefore);
  if (at == std::string_view::npos) return {};
  std::string_view text = version.substr(at + kBefore.size());
  return text.substr(0, text.find_first_not_of("0123456789."));
}

std::string_view ToolNote::arch() const {
  constexpr std::string_view kBefore = "-arch ";
  const std::size_t at = options.find(kBefore);
  if (at == std::string_view::npos) return {};
  std::string_view text = options.substr(at + kBefore.size());
  return text.substr(0, text.find(' '));
}

Result<ToolNote> read_tool_note(const ElfFile& elf, std::string_view name) {
  ToolNote note;
  for (const ElfSection& section : elf.sections) {
    if (section.name != ".note.nv.tkinfo") continue;
    const ByteReader reader(section.bytes);
    const auto header = reader.record<kNoteHeaderBytes>(0);
    if (!header) return broken_cubin(name, "{} has only {} bytes", section.name, section.size);
    // Another owner, kind or a shorter record: a note of a later tool, which says nothing here.
    if (header->get<std::uint32_t, 0>() != kOwnerBytes ||
        header->get<std::uint32_t, 8>() != kToolInfo) {
      return note;
    }
    const auto rest = reader.slice(kNoteHeaderBytes, header->get<std::uint32_t, 4>());
    if (!rest) return broken_cubin(name, "the note in {} runs out of it", section.name);
    const auto fields = ByteReader(*rest).record<kFieldsBytes>(0);
    if (!fields) return note;
    const ByteReader texts(rest->subspan(kFieldsBytes));
    const auto version = texts.c_string(fields->get<std::uint32_t, 12>());
    const auto options = texts.c_string(fields->get<std::uint32_t, 20>());
    if (!version || !options) {
      return broken_cubin(name, "a text in {} runs out of it", section.name);
    }
    note.version = *version;
    note.options = *options;
    return note;
  }
  return note;
}

}  // namespace cubist
