#include "importer/import.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "cubin/cubin_file.h"
#include "cubin/min_driver.h"
#include "importer/artifact.h"
#include "importer/checksums.h"
#include "importer/deep_check.h"
#include "importer/generation.h"
#include "importer/meta_row.h"
#include "importer/meta_table.h"
#include "importer/name_check.h"
#include "manifest/text.h"
#include "manifest/validate.h"

namespace cubist {
namespace {

// Published: 5.5 MB of header, 2.4 MB of checksums.
constexpr std::uint64_t kMaxHeaderBytes = 256ULL << 20;
constexpr std::uint64_t kMaxChecksumBytes = 64ULL << 20;

// What a CTA may have on compute capability 9.0 and 10.x (driver attribute 97), and what the system
// keeps of it for itself. Unit: bytes.
constexpr std::uint32_t kMaxSmemOptin = 232448;
constexpr std::uint32_t kReservedSmem = 1024;

std::string_view as_text(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Importer {
 public:
  Importer(const FileTree& tree, const ImportOptions& options) : tree_(tree), options_(options) {}

  Result<Import> run();

 private:
  Status read_sources();
  Status check_header_digest();
  Status import_table(const MetaTable& table, bool is_first);
  Status import_row(const MetaRow& row, Pack& pack);
  bool digest_agrees(const MetaRow& row, const std::string& path, const Sha256Digest& digest);
  bool is_new(const KernelRecord& record, const Pack& pack);
  void note_row(const MetaRow& row, const TreeFile& file);
  Result<Generation> generation_of(const MetaTable& table, bool is_first);
  Result<ParamLayout> layout_from_cubin(const MetaTable& table);
  std::int32_t min_driver_from_cubins(const Pack& pack) const;
  void check_files();
  Status check_deep();
  void add_sources(Pack& pack) const;
  void describe();

  void find(FindingKind kind, std::string_view subject, std::string detail = {}) {
    import_.report.findings.push_back({kind, std::string(subject), std::move(detail)});
  }
  const ChecksumLine* checksum_of(std::string_view path) const;

  const FileTree& tree_;
  const ImportOptions& options_;
  Artifact artifact_;
  WheelMetadata wheel_;
  std::vector<std::uint8_t> header_;
  std::vector<std::uint8_t> checksum_text_;
  std::vector<ChecksumLine> checksums_;
  std::unordered_set<std::string> named_files_;  // every file a row names, imported or not
  std::unordered_map<std::string, Sha256Digest> digest_of_name_;
  std::unordered_multimap<Sha256Digest, std::pair<std::size_t, std::size_t>> records_;
  Import import_;
};

const ChecksumLine* Importer::checksum_of(std::string_view path) const {
  const auto found =
      std::lower_bound(checksums_.begin(), checksums_.end(), path,
                       [](const ChecksumLine& line, std::string_view p) { return line.path < p; });
  return found != checksums_.end() && found->path == path ? &*found : nullptr;
}

Status Importer::read_sources() {
  CUBIST_ASSIGN_OR_RETURN(artifact_, find_artifact(tree_, options_.artifact));
  wheel_ = read_wheel_metadata(tree_);
  if (!options_.version.empty()) wheel_.version = options_.version;
  CUBIST_ASSIGN_OR_RETURN(header_, tree_.read(artifact_.header, kMaxHeaderBytes));
  if (artifact_.checksums.empty()) {
    find(FindingKind::kNoChecksums, artifact_.prefix + "checksums.txt");
    return {};
  }
  CUBIST_ASSIGN_OR_RETURN(checksum_text_, tree_.read(artifact_.checksums, kMaxChecksumBytes));
  CUBIST_ASSIGN_OR_RETURN(checksums_,
                          parse_checksums(as_text(checksum_text_), artifact_.checksums));
  return check_header_digest();
}

Status Importer::check_header_digest() {
  const std::string path = artifact_.header.substr(artifact_.prefix.size());
  const ChecksumLine* line = checksum_of(path);
  if (line == nullptr) {
    find(FindingKind::kRowWithoutChecksum, path);
  } else if (const Sha256Digest digest = sha256(header_); digest != line->sha256) {
    find(FindingKind::kHeaderDigest, path,
         fmt::format("checksums.txt says {}, its bytes have {}", line->sha256.hex(), digest.hex()));
  }
  return {};
}

/// Without a known release, the layout is what the first row's own cubin declares.
Result<ParamLayout> Importer::layout_from_cubin(const MetaTable& table) {
  CUBIST_ASSIGN_OR_RETURN(const MetaRowReader rows, MetaRowReader::create(table, artifact_.header));
  for (std::size_t i = 0; i < table.num_rows(); ++i) {
    CUBIST_ASSIGN_OR_RETURN(const MetaRow row, rows.read(i));
    const std::string path = artifact_.prefix + std::string(row.name) + ".cubin";
    if (tree_.find(path) == nullptr) continue;
    const Result<std::vector<std::uint8_t>> bytes = tree_.read(path, kMaxKernelBytes);
    if (!bytes) return ParamLayout::kNone;
    const Result<CubinFile> cubin = parse_cubin(*bytes, path);
    const CubinEntry* entry = cubin ? cubin->find(row.name) : nullptr;
    for (const ParamLayout layout :
         {ParamLayout::kTrtllmGenFmha1088, ParamLayout::kTrtllmGenFmha1152,
          ParamLayout::kTrtllmGenFmha1280}) {
      if (entry != nullptr && entry->param_bytes == param_layout_bytes(layout)) return layout;
    }
    return ParamLayout::kNone;
  }
  return ParamLayout::kNone;
}

/// The published rules read the first table of a header alone.
Result<Generation> Importer::generation_of(const MetaTable& table, bool is_first) {
  Generation generation{HeuristicRevision::kNone, ParamLayout::kNone};
  if (const auto known = find_generation(sha256(header_), artifact_.id)) {
    generation = *known;
  } else if (!options_.param_layout) {
    CUBIST_ASSIGN_OR_RETURN(generation.param_layout, layout_from_cubin(table));
  }
  if (options_.revision) generation.revision = *options_.revision;
  if (options_.param_layout) generation.param_layout = *options_.param_layout;
  if (!is_first) generation.revision = HeuristicRevision::kNone;
  return generation;
}

bool Importer::digest_agrees(const MetaRow& row, const std::string& path,
                             const Sha256Digest& digest) {
  if (artifact_.checksums.empty()) return true;
  const ChecksumLine* line = checksum_of(path);
  if (line == nullptr) {
    find(FindingKind::kRowWithoutChecksum, row.name);
    return true;
  }
  if (line->sha256 == digest) return true;
  find(FindingKind::kDigestMismatch, row.name,
       fmt::format("the row says {}, checksums.txt {}", digest.hex(), line->sha256.hex()));
  return false;
}

/// False, with a finding, for a record that an earlier one rules out.
bool Importer::is_new(const KernelRecord& record, const Pack& pack) {
  const auto [named, first] = digest_of_name_.try_emplace(record.name, record.sha256);
  if (!first && named->second != record.sha256) {
    find(FindingKind::kNameTwice, record.name,
         fmt::format("{}, then {}", named->second.hex(), record.sha256.hex()));
    return false;
  }
  const auto [begin, end] = records_.equal_range(record.sha256);
  for (auto same = begin; same != end; ++same) {
    const auto [pack_index, kernel] = same->second;
    const Pack& other =
        pack_index < import_.manifest.packs.size() ? import_.manifest.packs[pack_index] : pack;
    if (other.kernels[kernel].traits == record.traits) {
      find(FindingKind::kDuplicateRow, record.name);
      return false;
    }
  }
  if (static_cast<std::size_t>(std::distance(begin, end)) >= kMaxRecordsPerDigest) {
    find(FindingKind::kDuplicateRow, record.name,
         fmt::format("{} rows share its file already", kMaxRecordsPerDigest));
    return false;
  }
  if (begin != end) find(FindingKind::kSharedFile, record.name);
  records_.emplace(record.sha256, std::pair(import_.manifest.packs.size(), pack.kernels.size()));
  return true;
}

void Importer::note_row(const MetaRow& row, const TreeFile& file) {
  if (row.cubin_size != 0 && row.cubin_size != file.size) {
    find(FindingKind::kSizeMismatch, row.name,
         fmt::format("the row says {} bytes, the file has {}", row.cubin_size, file.size));
  }
  if (row.kv_type_differs) {
    find(FindingKind::kColumnMismatch, row.name, "mDataTypeKv against mDataTypeK and mDataTypeV");
  }
  if (std::optional<std::string> contradiction = name_contradiction(row.name, row.traits)) {
    find(FindingKind::kNameMismatch, row.name, std::move(*contradiction));
  }
  if (row.traits.smem + kReservedSmem > kMaxSmemOptin) {
    find(FindingKind::kUnlaunchable, row.name,
         fmt::format("{} + {} bytes; a device has {}", row.traits.smem, kReservedSmem,
                     kMaxSmemOptin));
  }
}

Status Importer::import_row(const MetaRow& row, Pack& pack) {
  const std::string path = std::string(row.name) + ".cubin";
  if (const std::string_view problem = path_problem(path); !problem.empty()) {
    return fail(StatusCode::kManifestInvalid, "{}:{}: the name {} {}", artifact_.header, row.line,
                shown(row.name), problem);
  }
  named_files_.insert(path);
  const TreeFile* file = tree_.find(artifact_.prefix + path);
  if (file == nullptr) {
    find(FindingKind::kRowWithoutFile, row.name);
    return {};
  }
  const std::optional<Sha256Digest> digest = Sha256Digest::parse(row.digest);
  if (!digest || *digest == Sha256Digest{}) {
    find(FindingKind::kBadDigest, row.name, shown(row.digest));
    return {};
  }
  if (row.reserved_set) {
    find(FindingKind::kReservedColumn, row.name);
    return {};
  }
  if (!digest_agrees(row, path, *digest)) return {};
  KernelRecord record{std::string(row.name), {}, *digest, file->size, row.traits};
  if (!is_new(record, pack)) return {};
  note_row(row, *file);
  pack.kernels.push_back(std::move(record));
  return {};
}

void Importer::add_sources(Pack& pack) const {
  constexpr std::string_view kWheelFolder = "flashinfer_cubin/";
  const bool is_wheel = !wheel_.name.empty() && !wheel_.version.empty();
  if (is_wheel && artifact_.prefix.starts_with(kWheelFolder)) {
    pack.sources.push_back(
        {Source::Kind::kPip, "flashinfer-cubin==" + wheel_.version, artifact_.prefix});
  } else {
    pack.sources.push_back(tree_.source());
    pack.sources.back().prefix = artifact_.prefix;
  }
}

/// The least that one of them asks of the driver, by the first cubin of each architecture; `deep`
/// looks at the others. 0: they do not say, or cannot be read, which is not for here to report.
std::int32_t Importer::min_driver_from_cubins(const Pack& pack) const {
  std::set<SmArch> seen;
  std::int32_t least = 0;
  for (const KernelRecord& record : pack.kernels) {
    if (!seen.insert(record.traits.arch).second) continue;
    const Result<std::vector<std::uint8_t>> bytes =
        tree_.read(artifact_.prefix + record.file(), kMaxKernelBytes);
    if (!bytes || sha256(*bytes) != record.sha256) return 0;
    const Result<CubinFile> cubin = parse_cubin(*bytes, record.file());
    const std::optional<std::int32_t> need = cubin ? min_driver_of(*cubin) : std::nullopt;
    if (!need) return 0;
    least = least == 0 ? *need : std::min(least, *need);
  }
  return least;
}

/// "sTllmGenFmhaKernelMetaInfosVx" is the table of pack "trtllm-gen-fmha-vx".
std::string pack_name(const MetaTable& table, bool is_first, std::size_t index) {
  std::string name = "trtllm-gen-fmha";
  if (is_first) return name;
  return name + (table.name.ends_with("Vx") ? "-vx" : fmt::format("-{}", index + 1));
}

Status Importer::import_table(const MetaTable& table, bool is_first) {
  CUBIST_ASSIGN_OR_RETURN(const MetaRowReader rows, MetaRowReader::create(table, artifact_.header));
  CUBIST_ASSIGN_OR_RETURN(const Generation generation, generation_of(table, is_first));
  Pack pack;
  pack.name = pack_name(table, is_first, import_.manifest.packs.size());
  pack.version = wheel_.version;
  pack.license = wheel_.license;
  pack.revision = generation.revision;
  pack.param_layout = generation.param_layout;
  add_sources(pack);
  pack.kernels.reserve(table.num_rows());
  for (std::size_t i = 0; i < table.num_rows(); ++i) {
    CUBIST_ASSIGN_OR_RETURN(const MetaRow row, rows.read(i));
    CUBIST_RETURN_IF_ERROR(import_row(row, pack));
  }
  pack.min_driver = min_driver_from_cubins(pack);
  import_.report.tables.push_back({.pack = pack.name,
                                   .struct_name = std::string(table.struct_name),
                                   .num_columns = static_cast<std::uint32_t>(table.columns.size()),
                                   .num_rows = static_cast<std::uint32_t>(table.num_rows()),
                                   .num_kernels = static_cast<std::uint32_t>(pack.kernels.size()),
                                   .revision = pack.revision,
                                   .param_layout = pack.param_layout});
  import_.manifest.packs.push_back(std::move(pack));
  return {};
}

/// Files nobody names, and names without a file.
void Importer::check_files() {
  const std::string& prefix = artifact_.prefix;
  for (const TreeFile& file : tree_.files()) {
    if (!file.path.starts_with(prefix)) continue;
    const std::string path = file.path.substr(prefix.size());
    if (path.ends_with(".cubin")) {
      ++import_.report.num_files;
      if (!named_files_.contains(path)) find(FindingKind::kFileWithoutRow, path);
    } else if (path.ends_with(".lock") || (path.find('/') == std::string::npos &&
                                           path != "checksums.txt" && !path.ends_with(".json"))) {
      find(FindingKind::kStrayFile, path);
    }
  }
  for (const ChecksumLine& line : checksums_) {
    const std::string path(line.path);
    if (tree_.find(prefix + path) == nullptr && !named_files_.contains(path)) {
      find(FindingKind::kChecksumWithoutFile, path);
    }
  }
  import_.report.num_checksums = static_cast<std::uint32_t>(checksums_.size());
}

Status Importer::check_deep() {
  std::uint64_t total = 0;
  for (const Pack& pack : import_.manifest.packs) total += pack.kernels.size();
  std::uint64_t before = 0;
  for (const Pack& pack : import_.manifest.packs) {
    std::uint64_t done = 0;
    CUBIST_ASSIGN_OR_RETURN(const std::vector<Finding> found,
                            deep_check(
                                tree_, artifact_.prefix, pack, options_.threads,
                                [&](std::uint64_t files) {
                                  done = files;
                                  if (options_.progress) options_.progress(before + done, total);
                                },
                                options_.cancel));
    before += done;
    std::vector<Finding>& findings = import_.report.findings;
    findings.insert(findings.end(), found.begin(), found.end());
  }
  import_.report.num_deep = static_cast<std::uint32_t>(before);
  return {};
}

void Importer::describe() {
  const std::string release = !wheel_.version.empty() ? wheel_.version
                              : !artifact_.id.empty() ? artifact_.id.substr(0, 8)
                                                      : "unknown";
  import_.manifest.name = "flashinfer-" + release;
  import_.manifest.description =
      fmt::format("trtllm-gen attention kernels of flashinfer-cubin {}, artifact {}", release,
                  artifact_.id.empty() ? "unknown" : artifact_.id);
  import_.report.source = tree_.name();
  import_.report.artifact = artifact_.id;
  import_.report.version = wheel_.version;
  import_.report.header = artifact_.header;
}

Result<Import> Importer::run() {
  CUBIST_RETURN_IF_ERROR(read_sources());
  describe();
  CUBIST_ASSIGN_OR_RETURN(const std::vector<MetaTable> tables,
                          parse_meta_tables(as_text(header_), artifact_.header));
  for (const MetaTable& table : tables) {
    if (!is_fmha_table(table)) continue;
    CUBIST_RETURN_IF_ERROR(import_table(table, import_.manifest.packs.empty()));
  }
  if (import_.manifest.packs.empty()) {
    return fail(StatusCode::kManifestInvalid,
                "{}: no table of FMHA kernels (a struct with mFuncName, mHeadDimQk and sha256)",
                artifact_.header);
  }
  check_files();
  if (options_.deep) CUBIST_RETURN_IF_ERROR(check_deep());
  std::vector<Finding>& findings = import_.report.findings;
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.kind < b.kind; });
  CUBIST_RETURN_IF_ERROR(validate_manifest(import_.manifest, artifact_.header));
  return std::move(import_);
}

}  // namespace

Result<Import> import_flashinfer(const FileTree& tree, const ImportOptions& options) {
  return Importer(tree, options).run();
}

}  // namespace cubist
