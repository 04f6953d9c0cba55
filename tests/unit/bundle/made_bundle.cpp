#include "made_bundle.h"

#include "support/catch.h"

namespace cubist::bundle::test {
namespace {

Bytes noise(std::size_t size) {
  Bytes bytes(size);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

}  // namespace

Bytes text_kernel() {
  const std::string_view text = "a kernel of forty bytes, not one more   ";
  return {text.begin(), text.end()};
}

Contents made_contents(std::map<Sha256Digest, Bytes>& kernels) {
  Contents contents;
  contents.name = "some";
  contents.tool = "cubist 0";
  contents.packs = {{"pack", "1.2", "Apache-2.0", {"pip:made==1.2", "/folder"}}};
  contents.manifests = {{"made", "{\"a\": 1}\n", "untrusted comment: x\nsignature\n"},
                        {"Another-1", "{}", std::nullopt}};
  contents.license = "Licence text\n";
  contents.notice = "Notice text\n";
  for (const Bytes& bytes : {text_kernel(), Bytes(4000, 0), noise(3000)}) {
    const Sha256Digest digest = sha256(bytes);
    kernels[digest] = bytes;
    contents.kernels.push_back({digest, bytes.size()});
  }
  return contents;
}

KernelReader reader_of(const std::map<Sha256Digest, Bytes>& kernels) {
  return [&kernels](const Kernel& kernel) {
    return VerifiedCubin::verify(kernels.at(kernel.sha256), kernel.sha256, kernel.size_bytes,
                                 "memory");
  };
}

MadeBundle make_bundle(Contents contents, std::map<Sha256Digest, Bytes> kernels,
                       const WriteOptions& options) {
  MadeBundle made;
  made.contents = std::move(contents);
  made.kernels = std::move(kernels);
  const auto sink = [&](std::span<const std::uint8_t> bytes) -> Status {
    made.file.insert(made.file.end(), bytes.begin(), bytes.end());
    return {};
  };
  auto written = write_bundle(made.contents, reader_of(made.kernels), sink, options);
  if (!written) FAIL(written.error().message());
  made.written = std::move(*written);
  return made;
}

MadeBundle make_bundle(const WriteOptions& options) {
  std::map<Sha256Digest, Bytes> kernels;
  Contents contents = made_contents(kernels);
  return make_bundle(std::move(contents), std::move(kernels), options);
}

Result<Bundle> open(const Bytes& file) { return Bundle::open(memory_access("b.zip", file)); }

}  // namespace cubist::bundle::test
