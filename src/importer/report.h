#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/enums.h"

namespace cubist {

/// What an import can find. The first group are disagreements: two parts of the source contradict
/// each other, or a part is missing. The second are notes: odd, and good to know, but no
/// contradiction.
enum class FindingKind : std::uint8_t {
  kRowWithoutFile,       ///< the table names a kernel whose file is not there; left out
  kFileWithoutRow,       ///< a cubin no row names; left out
  kBadDigest,            ///< a row's sha256 is none; left out
  kDigestMismatch,       ///< table and checksums.txt name different digests; left out
  kNoChecksums,          ///< there is no checksums.txt
  kRowWithoutChecksum,   ///< checksums.txt does not name the kernel's file
  kChecksumWithoutFile,  ///< checksums.txt names a file that is not there
  kHeaderDigest,         ///< checksums.txt names another digest for the metadata header itself
  kSizeMismatch,         ///< the table states a size that is not the file's
  kNameTwice,            ///< one name, two digests; the later row is left out
  kDuplicateRow,         ///< the same digest and traits as an earlier row; left out
  kNameMismatch,         ///< the name says something else than the columns
  kColumnMismatch,       ///< columns of one row contradict each other
  kReservedColumn,       ///< a column without a known meaning is set; left out
  kCubinDigest,          ///< --deep: the file's bytes have another digest
  kCubinMismatch,        ///< --deep: the cubin says something else than the row
  kCubinUnreadable,      ///< --deep: the file is no cubin
  // Notes.
  kSharedFile,    ///< several rows with other traits name this row's file
  kUnlaunchable,  ///< more shared memory than any device has
  kStrayFile,     ///< a file that is no part of the artifact, such as a lock
};
inline constexpr std::size_t kNumFindingKinds = 20;

/// "row_without_file": the word used in JSON.
std::string_view to_string(FindingKind kind);
/// One sentence for people; the same for all findings of a kind.
std::string_view describe(FindingKind kind);
bool is_note(FindingKind kind);

struct Finding {
  FindingKind kind;
  std::string subject;  ///< a kernel's name or a file's path
  std::string detail;   ///< what differs; may be empty
};

/// A metadata table and what became of it.
struct ImportedTable {
  std::string pack;  ///< name of the pack its rows went to
  std::string struct_name;
  std::uint32_t num_columns = 0;
  std::uint32_t num_rows = 0;
  std::uint32_t num_kernels = 0;  ///< rows that became records
  HeuristicRevision revision = HeuristicRevision::kNone;
  ParamLayout param_layout = ParamLayout::kNone;
};

struct ImportReport {
  std::string source;    ///< wheel or folder
  std::string artifact;  ///< the part of the path that identifies the release; may be empty
  std::string version;   ///< of the wheel; may be empty
  std::string header;    ///< path of the metadata header
  std::vector<ImportedTable> tables;
  std::uint32_t num_files = 0;      ///< cubins in the artifact's folder
  std::uint32_t num_checksums = 0;  ///< lines of checksums.txt
  std::uint32_t num_deep = 0;       ///< --deep: files read
  std::vector<Finding> findings;    ///< by kind, then in the table's order

  std::uint32_t num_rows() const;
  std::uint32_t num_kernels() const;
  /// How many findings are no mere notes.
  std::uint32_t num_disagreements() const;
  std::array<std::uint32_t, kNumFindingKinds> counts() const;
};

}  // namespace cubist
