#include <fnmatch.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command.h"
#include "cubin/cubin_file.h"
#include "importer/file_tree.h"
#include "inspect_report.h"
#include "print_json.h"

namespace cubist::tools {
namespace {

// Far above any cubin; keeps a wrong argument or a bomb in a wheel from filling memory.
constexpr std::uint64_t kMaxCubinBytes = std::uint64_t{256} << 20;

constexpr const char* kInspectHelp =
    R"(Prints what cubins say of themselves: architecture, entries, parameter bytes, registers,
threads, cluster, shared memory. Needs no GPU and no CUDA toolkit.

FILE is a cubin, a wheel (all cubins in it, or those --member names), WHEEL!MEMBER for
one member, or a folder with -r. MEMBER and GLOB may hold * ? [...]; * matches / too.

arch is sm_100a (that GPU alone), sm_100f (its family) or sm_100 (that and later ones).
"sm_100|sm_100f": the file does not say which of the two; its manifest does.
smem is the dynamic shared memory a launch must ask for; it is known if the cubin has
an entry NAME + "GetSmemSize" of a known form.

Examples:
  cubist inspect kernel.cubin
  cubist inspect -r ~/.cache/flashinfer/cubins --json > cubins.json
  cubist inspect flashinfer_cubin-0.6.13-py3-none-any.whl --member '*/fmha/*Sm103a*'
  cubist inspect 'flashinfer_cubin-0.6.13-py3-none-any.whl!*/gemm*E4m3*.cubin'

Exit code 4 if any file is no usable cubin; the others are shown all the same.)";

struct InspectArguments {
  std::vector<std::string> files;
  std::string member = "*.cubin";
  bool recursive = false;
};

class Inspection {
 public:
  Inspection(const InspectArguments& arguments, const CommonOptions& common)
      : arguments_(arguments), common_(common) {}

  ExitCode run() {
    for (const std::string& file : arguments_.files) inspect_argument(file);
    if (common_.json) {
      print_json({{"cubins", cubins_}, {"errors", errors_}}, outcome_);
    } else if (num_cubins_ + errors_.size() > 1 && !common_.quiet) {
      std::printf("%zu cubins, %zu errors\n", num_cubins_, errors_.size());
    }
    return outcome_ ? ExitCode::kOk : exit_code_for(outcome_.error().code());
  }

 private:
  void inspect_argument(const std::string& argument) {
    std::error_code ignored;
    const bool exists = std::filesystem::exists(argument, ignored);
    const std::size_t bang = argument.rfind('!');
    if (!exists && bang != std::string::npos) {
      inspect_tree(argument.substr(0, bang), argument.substr(bang + 1));
    } else if (std::filesystem::is_directory(argument, ignored)) {
      if (!arguments_.recursive) {
        report(argument,
               Error(StatusCode::kInvalidArgument,
                     fmt::format("'{}' is a folder; add -r to inspect the cubins below it",
                                 argument)));
        return;
      }
      inspect_tree(argument, arguments_.member);
    } else if (argument.ends_with(".whl") || argument.ends_with(".zip")) {
      inspect_tree(argument, arguments_.member);
    } else {
      inspect(argument, read_file(argument, kMaxCubinBytes));
    }
  }

  /// A wheel's or folder's files that match a glob.
  void inspect_tree(const std::string& path, const std::string& glob) {
    auto tree = open_file_tree(path);
    if (!tree) return report(path, tree.error());
    const std::string between = std::filesystem::is_directory(path) ? "/" : "!";
    bool any = false;
    for (const TreeFile& file : (*tree)->files()) {
      if (::fnmatch(glob.c_str(), file.path.c_str(), 0) != 0) continue;
      any = true;
      inspect(path + between + file.path, (*tree)->read(file.path, kMaxCubinBytes));
    }
    if (!any) {
      report(path, Error(StatusCode::kNotFound,
                         fmt::format("'{}' has no file that matches '{}'", path, glob)));
    }
  }

  void inspect(const std::string& name, const Result<std::vector<std::uint8_t>>& bytes) {
    if (!bytes) return report(name, bytes.error());
    const auto cubin = parse_cubin(*bytes, name);
    if (!cubin) return report(name, cubin.error());
    ++num_cubins_;
    const Sha256Digest digest = sha256(*bytes);
    if (common_.json) {
      cubins_.push_back(inspect_json(name, digest, *cubin));
    } else {
      std::fputs(inspect_text(name, digest, *cubin).c_str(), stdout);
    }
  }

  void report(const std::string& file, const Error& error) {
    const ExitCode code = print_error(error);
    errors_.push_back({{"file", file}, {"error", error_json(error)}});
    // A broken file tells more than a misspelt one: it decides if there are both.
    const bool was_broken =
        !outcome_ && exit_code_for(outcome_.error().code()) == ExitCode::kIntegrity;
    if (outcome_ || (code == ExitCode::kIntegrity && !was_broken)) {
      outcome_ = tl::unexpected<Error>(error);
    }
  }

  const InspectArguments& arguments_;
  const CommonOptions& common_;
  nlohmann::ordered_json cubins_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json errors_ = nlohmann::ordered_json::array();
  std::size_t num_cubins_ = 0;
  Status outcome_;
};

}  // namespace

void add_inspect_command(CommandContext context) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = context.app.add_subcommand("inspect", "Show what cubins say of themselves");
  command->footer(kInspectHelp);
  command->add_option("FILE", arguments->files, "Cubins, wheels, WHEEL!MEMBER, folders with -r")
      ->required();
  command->add_flag("-r,--recursive", arguments->recursive, "Inspect the files below folders");
  command->add_option("--member", arguments->member,
                      "Which files of wheels and folders (default '*.cubin')");
  add_common_options(*command, context.common);
  command->callback(
      [arguments, context] { context.exit_code = Inspection(*arguments, context.common).run(); });
}

}  // namespace cubist::tools
