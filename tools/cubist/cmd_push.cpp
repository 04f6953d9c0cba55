#include <cstdio>
#include <memory>
#include <string>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "command.h"
#include "fetch_support.h"
#include "interrupt.h"
#include "oci/image.h"
#include "oci/push.h"
#include "print_json.h"

namespace cubist::tools {
namespace {

struct PushArguments {
  std::string file;
  std::string reference;
  std::string mount_from;
  std::uint64_t layer_bytes = oci::kShardBytes;
  ConnectionArguments connection;
};

constexpr const char* kPushHelp =
    R"(Puts a bundle into an OCI registry, from where 'cubist pull' and fetch take it: the file that
'cubist bundle create' made, cut at the borders of its members into layers of some 32 MiB. What
the repository has already is not sent again; the tag is set last. The same file always gets
the same digest, which is printed: pin it (...@sha256:...) where it must not change.

Credentials are those of docker, podman, skopeo and Kubernetes: REGISTRY_AUTH_FILE, else
$XDG_RUNTIME_DIR/containers/auth.json, ~/.config/containers/auth.json, ~/.docker/config.json.

Examples:
  cubist bundle create --manifest flashinfer-0.6.13 --working-set set.json -o set.zip
  cubist push set.zip oci://registry.example.com/team/kernels:2026-12
  cubist push set.zip oci://localhost:5000/kernels:test

More: docs/oci.md.)";

void print_report(const oci::PushReport& report, const oci::Reference& reference) {
  std::printf("%s@%s\n", reference.text().c_str(), oci::digest_text(report.digest).c_str());
  std::printf("%zu of %zu blobs sent, %s of %s bytes, %.1f s\n",
              report.blobs_total - report.blobs_present - report.blobs_mounted, report.blobs_total,
              with_commas(report.sent_bytes).c_str(), with_commas(report.file_bytes).c_str(),
              report.seconds);
}

void print_report_json(const oci::PushReport& report, const oci::Reference& reference) {
  print_json({{"reference", reference.text()},
              {"digest", oci::digest_text(report.digest)},
              {"bundle", oci::digest_text(report.identity)},
              {"blobs", report.blobs_total},
              {"blobs_present", report.blobs_present},
              {"blobs_mounted", report.blobs_mounted},
              {"file_bytes", report.file_bytes},
              {"sent_bytes", report.sent_bytes},
              {"seconds", report.seconds}});
}

ExitCode run_push(const PushArguments& arguments, const CommonOptions& common) {
  const auto reference = oci::parse_reference(arguments.reference);
  if (!reference) return report_error(common, reference.error());
  const InterruptGuard interrupt;
  oci::PushOptions options;
  options.connect = registry_options(arguments.connection, interrupt.flag());
  options.mount_from = arguments.mount_from;
  options.layer_bytes = arguments.layer_bytes;
  const auto report = [&] {
    FetchProgressLine line(common);
    options.progress = [&](std::uint64_t total, std::uint64_t done) {
      line.show_bytes(total, done);
    };
    return oci::push(arguments.file, *reference, options);
  }();
  if (!report) return report_error(common, report.error());
  if (common.json) {
    print_report_json(*report, *reference);
  } else if (!common.quiet) {
    print_report(*report, *reference);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_push_command(CommandContext context) {
  CLI::App* command = context.app.add_subcommand("push", kPushHelp);
  const auto arguments = std::make_shared<PushArguments>();
  command->add_option("FILE", arguments->file, "A bundle")->required();
  command->add_option("REFERENCE", arguments->reference, "oci://HOST[:PORT]/REPOSITORY:TAG")
      ->required();
  command->add_option("--mount", arguments->mount_from,
                      "Another repository of the registry, from which it is to take the blobs that "
                      "it has there");
  command
      ->add_option("--layer-bytes", arguments->layer_bytes,
                   "Most bytes of kernels in one layer (default 33554432); what another run with "
                   "another number put there is not found again")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  add_connection_options(*command, arguments->connection);
  add_common_options(*command, context.common);
  command->callback(
      [context, arguments] { context.exit_code = run_push(*arguments, context.common); });
}

}  // namespace cubist::tools
