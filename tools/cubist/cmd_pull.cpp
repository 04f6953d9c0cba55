#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "bundle_checks.h"
#include "bundle_install.h"
#include "command.h"
#include "fetch_support.h"
#include "interrupt.h"
#include "oci/pull.h"
#include "oci/pull_install.h"
#include "print_json.h"
#include "trust_options.h"

namespace cubist::tools {
namespace {

using Json = nlohmann::ordered_json;

struct PullArguments {
  std::string reference;
  std::string output;
  BundleInstallArguments install;
  ConnectionArguments connection;
};

constexpr const char* kPullHelp =
    R"(Takes a bundle from an OCI registry, where 'cubist push' or skopeo put it.

It goes into the store as the file that was pushed, in bundles/, and its manifests into manifests/
there, as 'cubist bundle install' does it; --unpack makes an entry of each kernel instead. With -o
the file is written elsewhere, once its manifests are checked in the same way. Where the store has
every kernel none is asked for. A run that is stopped keeps what has come; the same command goes on.

The registry is trusted for nothing: layers are held to their digests, manifests to their
signatures (docs/signing.md), and kernels, when they are unpacked or used, to the manifests;
'cubist verify' hashes all of them at once. Where few kernels of a large bundle are needed,
'cubist fetch --source oci://...' reads those alone.

Examples:
  cubist pull oci://registry.example.com/team/kernels:2026-12
  cubist pull oci://registry.example.com/team/kernels@sha256:... --store /mnt/kernels
  cubist pull oci://localhost:5000/kernels:test -o set.zip
  cubist fetch --manifest M.json --kernel NAME --source oci://localhost:5000/kernels:test

More, with a how-to for Kubernetes: docs/oci.md.)";

struct Pulled {
  oci::RemoteBundle remote;
  oci::PullReport report;
  std::optional<InstalledBundle> installed;  ///< without -o
  double seconds = 0;
};

class Pull {
 public:
  Pull(const PullArguments& arguments, const CommonOptions& common)
      : arguments_(arguments), common_(common) {}

  Result<Pulled> run() {
    CUBIST_ASSIGN_OR_RETURN(const oci::Reference reference,
                            oci::parse_reference(arguments_.reference));
    options_.connect = registry_options(arguments_.connection, interrupt_.flag());
    oci::Clients clients(options_.connect.parallel, options_.connect.cancel);
    Pulled pulled;
    HttpClient* const beside = options_.connect.parallel > 1 ? &clients[1] : nullptr;
    CUBIST_ASSIGN_OR_RETURN(pulled.remote,
                            oci::open_remote(reference, options_.connect, clients[0], beside));
    FetchProgressLine line(common_);
    options_.progress = [&](std::uint64_t total, std::uint64_t done) {
      line.show_bytes(total, done);
    };
    if (arguments_.output.empty()) {
      CUBIST_RETURN_IF_ERROR(into_store(pulled, clients));
    } else {
      CUBIST_ASSIGN_OR_RETURN(const bundle::Checks checks, checks_of_user(Incoming::kByOwnName));
      const auto accept = [&](const bundle::Bundle& bundle) -> Status {
        CUBIST_RETURN_IF_ERROR(bundle::check_manifests(bundle, checks));
        return {};
      };
      CUBIST_ASSIGN_OR_RETURN(pulled.report, oci::pull_file(pulled.remote, arguments_.output,
                                                            clients, options_, accept));
    }
    pulled.report.http = clients.counters();
    pulled.seconds = elapsed();
    return pulled;
  }

 private:
  Status into_store(Pulled& pulled, oci::Clients& clients) {
    CUBIST_ASSIGN_OR_RETURN(const Store store, store_to_install_into(arguments_.install.store));
    CUBIST_ASSIGN_OR_RETURN(const bundle::InstallOptions options,
                            install_options(arguments_.install, interrupt_.flag()));
    const auto accept = [&](const bundle::Bundle& bundle) {
      return check_no_name_is_hidden(bundle, store, options);
    };
    CUBIST_ASSIGN_OR_RETURN(
        oci::PulledIntoStore done,
        oci::pull_into_store(pulled.remote, store, clients, options_, options, accept));
    pulled.report = done.pull;
    pulled.installed = InstalledBundle{store.root(), std::move(done.install), elapsed()};
    return {};
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  const PullArguments& arguments_;
  const CommonOptions& common_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  InterruptGuard interrupt_;
  oci::PullOptions options_;
};

Json pulled_json(const Pulled& pulled) {
  const oci::PullReport& report = pulled.report;
  Json json = {{"reference", pulled.remote.session->reference().text()},
               {"digest", oci::digest_text(pulled.remote.digest)},
               {"bundle", oci::digest_text(pulled.remote.config.identity)},
               {"name", pulled.remote.config.name},
               {"kernels", pulled.remote.config.num_kernels},
               {"layers", report.layers_total},
               {"layers_wanted", report.layers_wanted},
               {"layers_present", report.layers_present},
               {"file_bytes", report.file_bytes},
               {"requests", report.http.requests},
               {"retries", report.http.retries},
               {"received_bytes", report.http.received_bytes},
               {"seconds", pulled.seconds}};
  if (pulled.installed) json["install"] = installed_json(*pulled.installed);
  return json;
}

void print_pulled(const Pulled& pulled, const std::string& output) {
  oci::Reference reference = pulled.remote.session->reference();
  reference.digest = pulled.remote.digest;
  std::printf("%s\n", reference.text().c_str());
  std::printf("%zu of %zu layers wanted, %zu of them present; %s bytes received, %.1f s\n",
              pulled.report.layers_wanted, pulled.report.layers_total, pulled.report.layers_present,
              with_commas(pulled.report.http.received_bytes).c_str(), pulled.seconds);
  if (pulled.installed) {
    print_installed(*pulled.installed);
  } else {
    std::printf("%s bytes in %s\n", with_commas(pulled.report.file_bytes).c_str(), output.c_str());
  }
}

ExitCode run_pull(const PullArguments& arguments, const CommonOptions& common) {
  const auto pulled = Pull(arguments, common).run();
  if (!pulled) return report_error(common, pulled.error());
  if (common.json) {
    print_json(pulled_json(*pulled));
  } else if (!common.quiet) {
    print_pulled(*pulled, arguments.output);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_pull_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("pull", kPullHelp);
  const auto arguments = std::make_shared<PullArguments>();
  command
      ->add_option("REFERENCE", arguments->reference,
                   "oci://HOST[:PORT]/REPOSITORY, with :TAG or @sha256:DIGEST")
      ->required();
  CLI::Option* output =
      command->add_option("-o,--output", arguments->output, "Write the bundle file here");
  CLI::Option* store = command->add_option("--store", arguments->install.store,
                                           "Folder of the store; default as for fetch");
  CLI::Option* folder = command->add_option("--manifest-dir", arguments->install.manifest_folder,
                                            "Where manifests go; default: manifests/ in the store");
  CLI::Option* name = command->add_option("--as", arguments->install.name,
                                          "Another name for the bundle's only manifest");
  CLI::Option* replace =
      command->add_flag("--replace", arguments->install.replace,
                        "Put its manifests in the place of others that have their names");
  CLI::Option* unpack = command->add_flag("--unpack", arguments->install.unpack,
                                          "An entry of each kernel, in place of the bundle's file");
  for (CLI::Option* option : {store, folder, name, replace, unpack}) option->excludes(output);
  add_connection_options(*command, arguments->connection);
  add_trust_options(*command);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_pull(*arguments, context.common); });
}

}  // namespace cubist::tools
