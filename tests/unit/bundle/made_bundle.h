#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "bundle/write_bundle.h"

namespace cubist::bundle::test {

using Bytes = std::vector<std::uint8_t>;

/// A bundle of made-up kernels in memory.
struct MadeBundle {
  Contents contents;
  std::map<Sha256Digest, Bytes> kernels;
  Bytes file;
  WrittenBundle written;
};

/// One of the kernels: 40 bytes.
Bytes text_kernel();
/// Kernels of text, one of 4,000 zeros (it deflates well) and one of noise (it does not), with a
/// manifest "made" that has a signature, a licence and a notice.
Contents made_contents(std::map<Sha256Digest, Bytes>& kernels);
KernelReader reader_of(const std::map<Sha256Digest, Bytes>& kernels);
MadeBundle make_bundle(const WriteOptions& options = {});
MadeBundle make_bundle(Contents contents, std::map<Sha256Digest, Bytes> kernels,
                       const WriteOptions& options = {});

/// The file must outlive the result.
Result<Bundle> open(const Bytes& file);

}  // namespace cubist::bundle::test
