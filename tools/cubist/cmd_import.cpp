#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command.h"
#include "import_source.h"
#include "importer/import.h"
#include "interrupt.h"
#include "manifest/words.h"
#include "manifest/write.h"
#include "print_json.h"

namespace cubist::tools {
namespace {

struct ImportArguments {
  std::string source;
  std::string output;
  std::string artifact;
  std::string version;
  std::string revision;
  std::string param_layout;
  bool deep = false;
  bool strict = false;
  bool all = false;
};

constexpr const char* kImportHelp =
    R"(Makes a manifest of the attention kernels of a flashinfer-cubin release.

SOURCE is a wheel file, a folder with its files (an unpacked or installed wheel, or a
downloaded artifact), the URL of a wheel, or pip:flashinfer-cubin==VERSION: the wheel
your pip would install. Of a wheel elsewhere only the directory and the metadata are
read, a few MB, by HTTP range requests; --deep reads all of it.

Columns are found by name, so releases of every generation can be read. Everything the
release says twice is compared: table, checksums.txt, files, names; with --deep the
cubins themselves. What contradicts itself is reported, and rows whose identity is in
doubt are left out.

Examples:
  cubist import flashinfer flashinfer_cubin-0.6.13-py3-none-any.whl -o flashinfer.json
  cubist import flashinfer pip:flashinfer-cubin==0.6.11 -o old.json
  cubist import flashinfer ~/venv/lib/python3.11/site-packages --deep
  cubist import flashinfer DIR --strict --json > report.json)";

nlohmann::ordered_json report_json(const ImportReport& report) {
  nlohmann::ordered_json tables = nlohmann::ordered_json::array();
  for (const ImportedTable& table : report.tables) {
    tables.push_back({{"pack", table.pack},
                      {"struct", table.struct_name},
                      {"columns", table.num_columns},
                      {"rows", table.num_rows},
                      {"kernels", table.num_kernels},
                      {"revision", to_string(table.revision)},
                      {"param_layout", to_string(table.param_layout)}});
  }
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  const auto numbers = report.counts();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != 0) counts[std::string(to_string(static_cast<FindingKind>(i)))] = numbers[i];
  }
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"kind", to_string(finding.kind)},
                        {"note", is_note(finding.kind)},
                        {"subject", finding.subject},
                        {"detail", finding.detail}});
  }
  return {{"source", report.source},
          {"version", report.version},
          {"artifact", report.artifact},
          {"header", report.header},
          {"tables", std::move(tables)},
          {"kernels", report.num_kernels()},
          {"rows", report.num_rows()},
          {"files", report.num_files},
          {"checksums", report.num_checksums},
          {"deep_files", report.num_deep},
          {"disagreements", report.num_disagreements()},
          {"counts", std::move(counts)},
          {"findings", std::move(findings)}};
}

void print_findings(const ImportReport& report, FindingKind kind, std::uint32_t count, bool all) {
  constexpr std::uint32_t kShown = 5;
  std::printf("%s: %u %s\n", is_note(kind) ? "note" : "disagreement", count,
              std::string(describe(kind)).c_str());
  std::uint32_t printed = 0;
  for (const Finding& finding : report.findings) {
    if (finding.kind != kind) continue;
    if (!all && printed == kShown) {
      std::printf("  ... and %u more (--all-findings shows them)\n", count - printed);
      return;
    }
    std::printf("  %s%s%s\n", finding.subject.c_str(), finding.detail.empty() ? "" : ": ",
                finding.detail.c_str());
    ++printed;
  }
}

void print_report(const ImportReport& report, bool all) {
  std::printf("%s: flashinfer-cubin %s, artifact %s\n", report.source.c_str(),
              report.version.empty() ? "of unknown version" : report.version.c_str(),
              report.artifact.empty() ? "unknown" : report.artifact.c_str());
  for (const ImportedTable& table : report.tables) {
    std::printf("  pack %s: %u kernels of %u rows with %u columns; revision %s, parameters %s\n",
                table.pack.c_str(), table.num_kernels, table.num_rows, table.num_columns,
                std::string(to_string(table.revision)).c_str(),
                std::string(to_string(table.param_layout)).c_str());
  }
  std::printf("  %u cubin files, %u checksums", report.num_files, report.num_checksums);
  if (report.num_deep != 0) std::printf(", %u cubins read and compared", report.num_deep);
  std::printf("\n");
  const auto counts = report.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) print_findings(report, static_cast<FindingKind>(i), counts[i], all);
  }
  const std::uint32_t disagreements = report.num_disagreements();
  std::printf("%u kernels, %s\n", report.num_kernels(),
              disagreements == 0 ? "no disagreement"
                                 : fmt::format("{} disagreements", disagreements).c_str());
}

/// A line that rewrites itself, on terminals alone.
class Progress {
 public:
  explicit Progress(const CommonOptions& common)
      : enabled_(!common.quiet && !common.json && ::isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (enabled_ && printed_) std::fprintf(stderr, "\r\033[K");
  }
  void operator()(std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!enabled_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    printed_ = true;
    std::fprintf(stderr, "\rreading cubins: %llu of %llu", static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(total));
  }

 private:
  bool enabled_;
  bool printed_ = false;
  std::chrono::steady_clock::time_point last_;
};

template <class Enum>
Status read_option(const std::string& text, const char* flag, std::optional<Enum>& out) {
  if (text.empty()) return {};
  out = parse_word<Enum>(text);
  if (out) return {};
  return fail(StatusCode::kInvalidArgument, "{} {}: allowed are {}", flag, text, word_list<Enum>());
}

Result<Import> import_source(const ImportArguments& arguments, const CommonOptions& common) {
  ImportOptions options;
  options.artifact = arguments.artifact;
  options.version = arguments.version;
  CUBIST_RETURN_IF_ERROR(read_option(arguments.revision, "--revision", options.revision));
  CUBIST_RETURN_IF_ERROR(
      read_option(arguments.param_layout, "--param-layout", options.param_layout));
  options.deep = arguments.deep;
  Progress progress(common);
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress(done, total); };
  const InterruptGuard interrupt;
  options.cancel = interrupt.flag();
  CUBIST_ASSIGN_OR_RETURN(const ImportSource source,
                          open_import_source(arguments.source, interrupt.flag()));
  // A connection serves one thread.
  options.threads = source.client ? 1 : std::max(1U, std::thread::hardware_concurrency());
  return import_flashinfer(*source.tree, options);
}

Status write_output(const ImportArguments& arguments, const Import& import) {
  const std::uint32_t disagreements = import.report.num_disagreements();
  if (arguments.strict && disagreements != 0) {
    return fail(
        StatusCode::kManifestInvalid,
        "'{}': {} disagreements and --strict; {} written. The report above names them",
        arguments.source, disagreements,
        arguments.output.empty() ? "nothing" : fmt::format("'{}' was not", arguments.output));
  }
  if (arguments.output.empty()) return {};
  const std::string text = write_manifest(import.manifest);
  if (arguments.output == "-") {
    print(text);
    return {};
  }
  return write_file_atomically(arguments.output, text);
}

ExitCode run_import(const ImportArguments& arguments, const CommonOptions& common) {
  const Result<Import> import = import_source(arguments, common);
  if (!import) return report_error(common, import.error());
  const Status written = write_output(arguments, *import);
  if (common.json) {
    nlohmann::ordered_json document = report_json(import->report);
    document["output"] = written && !arguments.output.empty()
                             ? nlohmann::ordered_json(arguments.output)
                             : nlohmann::ordered_json(nullptr);
    print_json(std::move(document), written);
  } else if (arguments.output != "-") {
    print_report(import->report, arguments.all);
  }
  if (!written) return print_error(written.error());
  if (!common.json && !arguments.output.empty() && arguments.output != "-") {
    std::printf("wrote %s\n", arguments.output.c_str());
  }
  return ExitCode::kOk;
}

}  // namespace

void add_import_command(CommandContext context) {
  CLI::App* import = context.app.add_subcommand("import", "Make a manifest of a published release");
  import->require_subcommand(1);
  CLI::App* command = import->add_subcommand("flashinfer", kImportHelp);
  const auto arguments = std::make_shared<ImportArguments>();
  command
      ->add_option("source", arguments->source,
                   "Wheel file, folder, URL of a wheel, or pip:NAME==VERSION")
      ->required();
  command->add_option("-o,--output", arguments->output, "Manifest to write; - is standard output");
  command->add_flag(
      "--deep", arguments->deep,
      "Read every cubin and compare digest, architecture, entry, threads, shared memory "
      "and parameter bytes");
  command->add_flag("--strict", arguments->strict,
                    "Write nothing and end with exit code 8 if there is any disagreement");
  command->add_flag("--all-findings", arguments->all, "Print every finding, not five of a kind");
  command->add_option("--artifact", arguments->artifact,
                      "Part of the path of the artifact to take, where the source holds several");
  command->add_option("--release", arguments->version,
                      "Version of the release, where the source does not say");
  command->add_option("--revision", arguments->revision,
                      "Selection rules to name instead of those the release is known by");
  command->add_option("--param-layout", arguments->param_layout,
                      "Parameter layout to name instead of the one the release is known by");
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_import(*arguments, context.common); });
}

}  // namespace cubist::tools
