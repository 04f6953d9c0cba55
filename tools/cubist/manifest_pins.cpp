#include "manifest_pins.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "config/project.h"
#include "manifest/parse.h"
#include "manifest_names.h"
#include "print_json.h"
#include "runtime/manifest_path.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestAddHelp =
    R"(Pins a manifest by its SHA-256 in the project's file.

From then on every command that runs in the folder of that file, cubist.json, or below it
takes --manifest NAME to mean this very manifest, and ends with exit code 4 if it is
another. Keep cubist.json under version control.

Examples:
  cubist manifest add flashinfer-0.6.13
  cubist manifest add kernels/mine.json --as mine
  cubist manifest add mine.json --sha256 0c2e...   # refused if it is another
  cubist manifest add flashinfer-0.6.13 --replace  # after an upgrade)";

struct AddArguments {
  std::string manifest;
  std::string name;
  std::string sha256;
  std::string project;
  bool replace = false;
};

Result<std::string> project_file(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code error;
  const fs::path folder = fs::current_path(error);
  if (error) return fail(StatusCode::kIo, "the current folder: {}", error.message());
  CUBIST_ASSIGN_OR_RETURN(std::string found, config::find_project_file(folder.string()));
  return found.empty() ? (folder / "cubist.json").string() : std::move(found);
}

/// A new project where there is no file yet.
Result<config::Project> open_project(const std::string& file) {
  auto project = config::load_project(file);
  if (project || project.error().code() != StatusCode::kNotFound) return project;
  config::Project fresh;
  fresh.file = file;
  return fresh;
}

/// The digest of a manifest that was read, is valid, and is the one that was asked for.
Result<Sha256Digest> digest_of_manifest(const AddArguments& arguments, const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxManifestBytes));
  const Sha256Digest digest =
      sha256({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  if (!arguments.sha256.empty()) {
    const auto expected = Sha256Digest::parse(arguments.sha256);
    if (!expected) {
      return fail(StatusCode::kInvalidArgument, "--sha256 '{}': expected 64 hexadecimal digits",
                  arguments.sha256);
    }
    if (*expected != digest) {
      return fail(StatusCode::kIntegrity, "'{}' has sha256 {}, expected {}; nothing was pinned",
                  path, digest.hex(), expected->hex());
    }
  }
  CUBIST_ASSIGN_OR_RETURN(trust::Trust * trust, trust_of_user());
  CUBIST_ASSIGN_OR_RETURN(const auto opened, runtime::parse_trusted_manifest(text, path, *trust));
  return digest;
}

/// Relative where the file lies below the project's folder, so that a checkout can move.
std::string path_for_project(const std::string& path, const config::Project& project) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  const fs::path folder = fs::absolute(project.file, error).lexically_normal().parent_path();
  const fs::path relative = absolute.lexically_relative(folder);
  return relative.empty() || *relative.begin() == ".." ? absolute.string() : relative.string();
}

Result<config::PinnedManifest> make_pin(const AddArguments& arguments, const std::string& path,
                                        const config::Project& project) {
  config::PinnedManifest pin;
  const bool is_file = path == arguments.manifest;
  if (!is_file && !arguments.name.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "--as names a file; '{}' has a name, which it is found by everywhere",
                arguments.manifest);
  }
  pin.name = !arguments.name.empty() ? arguments.name
             : is_file               ? fs::path(path).stem().string()
                                     : arguments.manifest;
  if (!config::is_manifest_name(pin.name)) {
    return fail(StatusCode::kInvalidArgument,
                "'{}' is no name for a manifest (letters, digits and _.-$+); give one with --as",
                pin.name);
  }
  if (is_file) pin.path = path_for_project(path, project);
  CUBIST_ASSIGN_OR_RETURN(pin.sha256, digest_of_manifest(arguments, path));
  return pin;
}

struct Added {
  std::string project;
  config::PinnedManifest pin;
  std::string path;
  std::optional<Sha256Digest> replaced;
};

Result<Added> add_pin(const AddArguments& arguments) {
  CUBIST_ASSIGN_OR_RETURN(const std::string path, runtime::find_manifest(arguments.manifest));
  CUBIST_ASSIGN_OR_RETURN(const std::string file, project_file(arguments.project));
  CUBIST_ASSIGN_OR_RETURN(config::Project project, open_project(file));
  Added added{file, {}, path, {}};
  CUBIST_ASSIGN_OR_RETURN(added.pin, make_pin(arguments, path, project));
  if (const config::PinnedManifest* old = project.find(added.pin.name)) {
    if (*old == added.pin) return added;
    if (!arguments.replace) {
      return fail(StatusCode::kInvalidArgument,
                  "'{}' pins manifest '{}' to sha256 {}{}; this one is {}. --replace takes it "
                  "instead ('cubist manifest diff' says what changed)",
                  file, old->name, old->sha256.hex(),
                  old->path.empty() ? "" : fmt::format(" in '{}'", old->path),
                  added.pin.sha256.hex());
    }
    added.replaced = old->sha256;
  }
  project.put(added.pin);
  CUBIST_RETURN_IF_ERROR(write_file_atomically(file, config::write_project(project)));
  return added;
}

ExitCode run_manifest_add(const AddArguments& arguments, const CommonOptions& common) {
  const auto added = add_pin(arguments);
  if (!added) return report_error(common, added.error());
  if (common.json) {
    nlohmann::ordered_json document = {{"project", added->project},
                                       {"name", added->pin.name},
                                       {"path", added->path},
                                       {"sha256", added->pin.sha256.hex()},
                                       {"replaced", nullptr}};
    if (added->replaced) document["replaced"] = added->replaced->hex();
    print_json(document);
  } else {
    print(fmt::format("{}: {} is {} ({})\n", added->project, added->pin.name,
                      added->pin.sha256.hex(), added->path));
  }
  return ExitCode::kOk;
}

/// Whether what is pinned is there and is what it shall be.
Status check_named(const NamedManifest& manifest) {
  if (!manifest.pinned) return {};
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(manifest.path, kMaxManifestBytes));
  return check_pin(manifest, text);
}

}  // namespace

ExitCode list_manifests(const CommonOptions& common) {
  const auto names = manifest_names();
  if (!names) return report_error(common, names.error());
  Status first;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& name : *names) {
    const auto found = find_manifest(name);
    const Status checked =
        found ? check_named(*found) : Status(tl::unexpected(Error(found.error())));
    nlohmann::ordered_json row = {{"name", name}, {"path", found ? found->path : ""}};
    if (found && found->pinned) row["pinned"] = found->pinned->hex();
    if (!checked) {
      row["error"] = error_json(checked.error());
      if (first) first = checked;
      print_error(checked.error());
    }
    if (!common.json) {
      const char* state = !checked ? "  WRONG" : found->pinned.has_value() ? "  pinned" : "";
      print(fmt::format("{}  {}{}\n", name, found ? found->path : "(not found)", state));
    }
    list.push_back(std::move(row));
  }
  if (common.json) {
    print_json({{"manifests", std::move(list)}}, first);
  }
  return first ? ExitCode::kOk : exit_code_for(first.error().code());
}

void add_manifest_add(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("add", kManifestAddHelp);
  const auto arguments = std::make_shared<AddArguments>();
  command->add_option("manifest", arguments->manifest, "A file, or a shipped name")->required();
  command->add_option("--as", arguments->name,
                      "Name to pin a file under (default: the file's own)");
  command->add_option("--sha256", arguments->sha256, "What the manifest must hash to");
  command->add_option("--project", arguments->project,
                      "The project's file (default: cubist.json here or above)");
  command->add_flag("--replace", arguments->replace, "Pin anew what is pinned to another");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_manifest_add(*arguments, context.common); });
}

void add_manifest_list(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand(
      "list",
      "List the manifests that have a name here: pinned by the project, in the folders of the "
      "configuration, shipped. Ends with exit code 4 if one is not what is pinned");
  add_common_options(*command, context.common);
  command->callback([context] { context.exit_code = list_manifests(context.common); });
}

}  // namespace cubist::tools
