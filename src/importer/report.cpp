#include "importer/report.h"

#include <algorithm>

namespace cubist {
namespace {

struct KindText {
  std::string_view word;
  std::string_view sentence;
};

constexpr std::array<KindText, kNumFindingKinds> kTexts = {{
    {"row_without_file", "rows whose file is missing (left out)"},
    {"file_without_row", "cubins that no row names (left out)"},
    {"bad_digest", "rows whose sha256 is not one (left out)"},
    {"digest_mismatch", "rows whose sha256 differs from checksums.txt (left out)"},
    {"no_checksums", "there is no checksums.txt to compare with"},
    {"row_without_checksum", "rows whose file checksums.txt does not name"},
    {"checksum_without_file", "lines of checksums.txt whose file is missing"},
    {"header_digest", "the metadata header is not the one that checksums.txt names"},
    {"size_mismatch", "rows that state another size than the file's"},
    {"name_twice", "names that occur with two digests (the later row left out)"},
    {"duplicate_row", "rows with the digest and traits of an earlier one (left out)"},
    {"name_mismatch", "rows whose name contradicts their columns"},
    {"column_mismatch", "rows whose columns contradict each other"},
    {"reserved_column", "rows that set a column without a known meaning (left out)"},
    {"cubin_digest", "files whose bytes have another sha256"},
    {"cubin_mismatch", "cubins that say something else than their row"},
    {"cubin_unreadable", "files that are no usable cubin"},
    {"shared_file", "rows that share a file with an earlier row of other traits"},
    {"unlaunchable", "rows that need more shared memory than any device has"},
    {"stray_file", "stray files"},
}};

}  // namespace

std::string_view to_string(FindingKind kind) { return kTexts[static_cast<std::size_t>(kind)].word; }

std::string_view describe(FindingKind kind) {
  return kTexts[static_cast<std::size_t>(kind)].sentence;
}

bool is_note(FindingKind kind) { return kind >= FindingKind::kSharedFile; }

std::uint32_t ImportReport::num_rows() const {
  std::uint32_t total = 0;
  for (const ImportedTable& table : tables) total += table.num_rows;
  return total;
}

std::uint32_t ImportReport::num_kernels() const {
  std::uint32_t total = 0;
  for (const ImportedTable& table : tables) total += table.num_kernels;
  return total;
}

std::uint32_t ImportReport::num_disagreements() const {
  return static_cast<std::uint32_t>(std::count_if(
      findings.begin(), findings.end(), [](const Finding& f) { return !is_note(f.kind); }));
}

std::array<std::uint32_t, kNumFindingKinds> ImportReport::counts() const {
  std::array<std::uint32_t, kNumFindingKinds> counts{};
  for (const Finding& finding : findings) ++counts[static_cast<std::size_t>(finding.kind)];
  return counts;
}

}  // namespace cubist
