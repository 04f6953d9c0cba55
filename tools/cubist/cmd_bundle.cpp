#include <memory>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "bundle_create.h"
#include "bundle_inspect.h"
#include "bundle_install.h"
#include "bundle_kept.h"
#include "command.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

constexpr const char* kBundleHelp =
    R"(Carries kernels to machines without a network: one file with kernels, manifest, signature,
licences and provenance.

Examples:
  cubist bundle create --working-set set.json -o kernels.zip     where there is a network
  cubist bundle inspect kernels.zip --verify
  cubist bundle install kernels.zip                              where there is none
  cubist fetch --offline --manifest NAME --working-set set.json  all is there
  cubist bundle list                                             those the store keeps
  cubist bundle remove flashinfer-0.6.13)";

constexpr const char* kCreateHelp =
    R"(Writes a bundle: the manifests byte for byte (with their .minisig), and of their kernels
those that are named, in a working set, or pass the filters; filters narrow the others.

Kernels come from the store, and what is missing there from the manifest's sources or
--source (not with --offline). The same kernels, manifests and cubist make the same bytes;
--stored makes them the same with every zlib, and the file larger.

A bundle is a zip, and also a source: cubist fetch --source kernels.zip

Examples:
  cubist bundle create --working-set set.json -o kernels.zip
  cubist bundle create --manifest flashinfer-0.6.13 --arch sm_100 --dtype-q bf16 -o bf16.zip
  cubist bundle create --manifest M.json --kernel NAME --kernel SHA256 -o two.zip
  cubist bundle create --manifest flashinfer-0.6.13 --all --source ./flashinfer_cubin.whl -o all.zip)";

constexpr const char* kInspectHelp =
    R"(Says what is in a bundle. Its form is checked always: exactly the members that bundle.json
names, and no other byte. --verify reads all of it: every kernel and manifest against its
digest, signatures against the trusted keys, kernels against the revocation lists.

Ends with 4 if something is not as it should be.

Examples:
  cubist bundle inspect kernels.zip
  cubist bundle inspect https://host/kernels.zip --json    two or three requests
  cubist bundle inspect kernels.zip --verify --trusted-key publisher.pub)";

constexpr const char* kInstallHelp =
    R"(Brings a bundle into the store, and its manifests into manifests/ there, where
--manifest NAME finds them (after pins, CUBIST_MANIFESTS and shipped ones).

The file is kept as it is, in bundles/, and kernels are served from it; with --unpack each
kernel becomes an entry of its own (four times the space, thousands of files). If the store
has every kernel already, nothing but the manifests is written.

Nothing is written before the file's form, its manifests, their signatures and the
revocation lists were checked. Every kernel is hashed before the file, or its entry, gets
its name; manifests appear last. Stopped at any point, the same command goes on. It opens
no socket.

A manifest of that name that is another one is not replaced, unless --replace says so.
With --store, everything goes into that store; without, kernels that a layer below the
usual store has stay there.

Examples:
  cubist bundle install kernels.zip
  cubist bundle install kernels.zip --store /mnt/image/cubist     a base store, for CUBIST_STORE_BASE
  cubist bundle install kernels.zip --unpack                      entries, for 'cubist fetch --source http://...'
  cubist bundle install kernels.zip --as flashinfer-site)";

constexpr const char* kListHelp =
    R"(Lists the bundles that the store and the layers below it keep, those that 'cubist bundle
install' and 'cubist pull' brought: identity, name, kernels, size, when it was last
installed, pulled or relied on by either (which is what 'cubist gc' goes by), manifests.
Reads their directories, hashes no kernel ('cubist verify' does) and writes nothing.

Ends with 4 if one is broken, or named after another bundle's identity; the others are listed
all the same.

Examples:
  cubist bundle list
  cubist bundle list --store /mnt/image/cubist --json)";

constexpr const char* kRemoveHelp =
    R"(Removes bundles from the store, each named by its identity (the first 6 digits or more), its
name or its path. As in 'cubist gc', one that a running program serves kernels from stays (exit
code 6), and so does one with a kernel that --pin keeps (exit code 2), also where the rest of it
is broken; nothing is removed from a layer below. Whether all that are named exist is looked at
before the first goes.

Says how many of its kernels the rest of the store serves still. Its manifests stay, so that
'cubist fetch --manifest NAME' can get the kernels elsewhere; --manifests removes those in the
store that no other bundle in it brought.

Examples:
  cubist bundle remove 3f9a2c1b04de --dry-run
  cubist bundle remove flashinfer-0.6.13 --manifests
  cubist bundle remove flashinfer-0.6.13 --pin working-set.json     not if the deployment needs it)";

void add_create(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("create", kCreateHelp);
  const auto arguments = std::make_shared<BundleCreateArguments>();
  BundleSelection& selection = arguments->selection;
  command
      ->add_option("-m,--manifest", selection.manifests,
                   "Manifest: a file, or a name; may be repeated. A working set names its own")
      ->allow_extra_args(false);
  command
      ->add_option("-k,--kernel", selection.kernels, "Kernel by name or SHA-256; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--working-set", selection.working_set,
                      "Every kernel of a file that 'cubist working-set -o' wrote");
  command->add_flag("--all", selection.all, "Every kernel of the manifests");
  command->add_option("-o,--output", arguments->output, "File to write; - is standard output")
      ->required();
  command->add_option("--bundle-name", arguments->name,
                      "Name of the bundle (default: its manifests')");
  command->add_flag("--stored", arguments->stored, "Do not deflate");
  command
      ->add_option("--license", arguments->license_files,
                   "Text to add to LICENSE, such as that of a licence that has none in licenses/ "
                   "beside the manifest; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--notice", arguments->notice_files, "Text to add to NOTICE; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--store", arguments->store, "Folder of the store");
  add_filter_options(*command, selection.filter);
  add_source_options(*command, arguments->source);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_bundle_create(*arguments, context.common); });
}

void add_inspect(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("inspect", kInspectHelp);
  const auto arguments = std::make_shared<BundleInspectArguments>();
  command->add_option("bundle", arguments->location, "A file, or an http(s) URL")->required();
  command->add_flag("--verify", arguments->verify, "Hash everything");
  command->add_flag("--offline", arguments->offline, "Refuse a URL");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback([context, arguments] {
    note_no_serials();
    context.exit_code = run_bundle_inspect(*arguments, context.common);
  });
}

void add_install(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("install", kInstallHelp);
  const auto arguments = std::make_shared<BundleInstallArguments>();
  command->add_option("bundle", arguments->file, "A file")->required();
  command->add_option("--store", arguments->store, "Folder of the store");
  command->add_option("--manifest-dir", arguments->manifest_folder,
                      "Folder for the manifests (default: manifests/ in the store)");
  command->add_option("--as", arguments->name, "Another name for the bundle's only manifest");
  command->add_flag("--replace", arguments->replace,
                    "Take the place of another manifest of that name in that folder");
  command->add_flag("--unpack", arguments->unpack,
                    "An entry of each kernel, in place of the bundle's file");
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_bundle_install(*arguments, context.common); });
}

void add_list(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("list", kListHelp);
  const auto store = std::make_shared<std::string>();
  command->add_option("--store", *store, "Folder of the store");
  add_common_options(*command, context.common);
  command->callback(
      [context, store] { context.exit_code = run_bundle_list(*store, context.common); });
}

void add_remove(CLI::App& parent, CommandContext context) {
  CLI::App* command = parent.add_subcommand("remove", kRemoveHelp);
  const auto arguments = std::make_shared<BundleRemoveArguments>();
  command->add_option("bundles", arguments->bundles, "Identities, names or paths")->required();
  command
      ->add_option("--pin", arguments->pins,
                   "Keep every SHA-256 in this file or shipped manifest; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--manifests", arguments->manifests,
                    "Also remove its manifests from the store");
  command->add_flag("--dry-run", arguments->dry_run, "Remove nothing, say what would go");
  command->add_option("--store", arguments->store, "Folder of the store");
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_bundle_remove(*arguments, context.common); });
}

}  // namespace

void add_bundle_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("bundle", kBundleHelp);
  command->require_subcommand(1);
  add_create(*command, context);
  add_inspect(*command, context);
  add_install(*command, context);
  add_list(*command, context);
  add_remove(*command, context);
}

}  // namespace cubist::tools
