#include "cubin/elf_overlap.h"

#include <algorithm>

namespace cubist {
namespace {

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string_view what;
};

bool may_share_bytes(std::string_view section) {
  return section.starts_with(".nv.merc.") || section.starts_with(".nv.capmerc.");
}

}  // namespace

Status check_overlaps(const std::vector<ElfSection>& sections, const ElfTables& tables,
                      std::string_view name) {
  std::vector<Range> ranges;
  ranges.reserve(sections.size() + 3);
  ranges.push_back({0, 64, "the ELF header"});
  ranges.push_back({tables.sections_offset, tables.sections_size, "the section headers"});
  ranges.push_back({tables.segments_offset, tables.segments_size, "the segments' table"});
  for (const ElfSection& section : sections) {
    if (may_share_bytes(section.name)) continue;
    ranges.push_back({section.offset, section.bytes.size(), section.name});
  }
  std::erase_if(ranges, [](const Range& range) { return range.size == 0; });
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const Range& before = ranges[i - 1];
    // No overflow: every range was checked to lie inside the file.
    if (before.offset + before.size > ranges[i].offset) {
      return broken_cubin(name, "{} and {} overlap at byte {}", before.what, ranges[i].what,
                          ranges[i].offset);
    }
  }
  return {};
}

}  // namespace cubist
