#include "bundle/write_bundle.h"

#include <algorithm>
#include <atomic>

#include "base/threads.h"
#include "bundle/layout.h"

namespace cubist::bundle {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Part part_of(std::string path, const std::string& text) {
  return {std::move(path), sha256(bytes_of(text)), text.size()};
}

std::vector<const ManifestInput*> sorted_manifests(const Contents& contents) {
  std::vector<const ManifestInput*> sorted;
  for (const ManifestInput& manifest : contents.manifests) sorted.push_back(&manifest);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  return sorted;
}

Description describe(const Contents& contents) {
  Description description;
  description.name = contents.name;
  description.tool = contents.tool;
  description.packs = contents.packs;
  for (const ManifestInput* input : sorted_manifests(contents)) {
    ManifestPart part;
    part.name = input->name;
    part.text = part_of(manifest_member_name(input->name), input->text);
    if (input->signature) {
      part.signature = part_of(signature_member_name(input->name), *input->signature);
    }
    description.manifests.push_back(std::move(part));
  }
  if (!contents.license.empty()) {
    description.license = part_of(std::string(kLicenseName), contents.license);
  }
  if (!contents.notice.empty()) {
    description.notice = part_of(std::string(kNoticeName), contents.notice);
  }
  description.kernels = contents.kernels;
  std::sort(description.kernels.begin(), description.kernels.end());
  const auto last = std::unique(description.kernels.begin(), description.kernels.end());
  description.kernels.erase(last, description.kernels.end());
  return description;
}

/// Packs kernels [begin, end), each thread taking the next one that nobody has.
std::vector<Result<PackedMember>> pack_batch(std::span<const Kernel> batch,
                                             const KernelReader& kernels,
                                             const WriteOptions& options) {
  std::vector<Result<PackedMember>> packed(batch.size());
  std::atomic<std::size_t> next = 0;
  on_threads(std::min<std::size_t>(options.threads, batch.size()), [&](unsigned) {
    for (std::size_t i = next++; i < batch.size(); i = next++) {
      const auto cubin = kernels(batch[i]);
      packed[i] = cubin ? Result<PackedMember>(pack_member(cubin->bytes(), options.stored))
                        : Result<PackedMember>(tl::unexpected<Error>(Error(cubin.error())));
    }
  });
  return packed;
}

Status write_kernels(const std::vector<Kernel>& list, const KernelReader& kernels, ZipWriter& zip,
                     const WriteOptions& options) {
  // Large enough that threads seldom wait for the slowest of a batch, and a few MB in memory.
  const std::size_t batch_size = std::size_t{16} * std::max(1U, options.threads);
  for (std::size_t begin = 0; begin < list.size(); begin += batch_size) {
    if (options.cancel != nullptr && *options.cancel) {
      return fail(StatusCode::kInterrupted, "stopped; the bundle was not finished");
    }
    const std::span<const Kernel> batch(list.data() + begin,
                                        std::min(batch_size, list.size() - begin));
    auto packed = pack_batch(batch, kernels, options);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!packed[i]) return forward_error(packed[i]);
      CUBIST_RETURN_IF_ERROR(zip.add(kernel_member_name(batch[i].sha256), *packed[i]));
    }
    if (options.progress) options.progress(begin + batch.size());
  }
  return {};
}

/// What reading would refuse must not be written.
Status check_readable(const Description& description, const std::string& text) {
  auto parsed = parse_description(text, "the bundle to write");
  if (!parsed) return fail(StatusCode::kInvalidArgument, "{}", parsed.error().message());
  if (*parsed == description) return {};
  return fail(StatusCode::kInvalidArgument,
              "the bundle to write: bundle.json would not read back as it is meant: a name, source "
              "or version in it is no UTF-8");
}

}  // namespace

Result<WrittenBundle> write_bundle(const Contents& contents, const KernelReader& kernels,
                                   const ZipWriter::Sink& sink, const WriteOptions& options) {
  WrittenBundle written;
  written.description = describe(contents);
  const std::string text = write_description(written.description);
  CUBIST_RETURN_IF_ERROR(check_readable(written.description, text));
  written.identity = sha256(bytes_of(text));

  Sha256 hasher;
  ZipWriter zip([&](std::span<const std::uint8_t> bytes) {
    hasher.update(bytes);
    return sink(bytes);
  });
  const auto add = [&](std::string_view name, const std::string& part) {
    return zip.add(name, pack_member(bytes_of(part), options.stored));
  };
  CUBIST_RETURN_IF_ERROR(add(kDescriptionName, text));
  for (const ManifestInput* input : sorted_manifests(contents)) {
    CUBIST_RETURN_IF_ERROR(add(manifest_member_name(input->name), input->text));
    if (input->signature) {
      CUBIST_RETURN_IF_ERROR(add(signature_member_name(input->name), *input->signature));
    }
  }
  if (!contents.license.empty()) CUBIST_RETURN_IF_ERROR(add(kLicenseName, contents.license));
  if (!contents.notice.empty()) CUBIST_RETURN_IF_ERROR(add(kNoticeName, contents.notice));
  CUBIST_RETURN_IF_ERROR(write_kernels(written.description.kernels, kernels, zip, options));
  CUBIST_RETURN_IF_ERROR(zip.finish());
  written.sha256 = hasher.finish();
  written.file_bytes = zip.offset();
  return written;
}

}  // namespace cubist::bundle
