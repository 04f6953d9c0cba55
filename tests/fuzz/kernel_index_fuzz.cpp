#include <cstdint>
#include <memory>
#include <vector>

#include "check.h"
#include "manifest/kernel_index.h"
#include "manifest/write.h"

// The index of a manifest, as it comes and with size and checksum made right: what is behind them
// is read only then.

namespace cubist {
namespace {

void check_index(const std::vector<std::uint8_t>& bytes) {
  const auto kept = std::make_shared<const std::vector<std::uint8_t>>(bytes);
  const auto head = read_kernel_index_head(*kept);
  const auto manifest = read_kernel_index(*kept, {kept});
  if (!manifest) {
    FUZZ_CHECK(manifest.error().code() == StatusCode::kIntegrity);
    return;
  }
  FUZZ_CHECK(head);
  FUZZ_CHECK(!write_manifest(*manifest).empty());  // looks at every text and trait
  const auto again = write_kernel_index(*manifest, *head);
  FUZZ_CHECK(again && read_kernel_index_head(*again).value() == *head);
  const auto back_kept = std::make_shared<const std::vector<std::uint8_t>>(*again);
  const auto back = read_kernel_index(*back_kept, {back_kept});
  FUZZ_CHECK(back && *back == *manifest);
}

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  cubist::check_index(bytes);
  cubist::seal_kernel_index(bytes);
  cubist::check_index(bytes);
  return 0;
}
