#include <span>

#include "check.h"
#include "cubin/cross_check.h"
#include "cubin/cubin_file.h"

namespace cubist {
namespace {

/// What parse_cubin promises of a file it accepts.
void check_promises(const CubinFile& cubin, std::size_t size) {
  FUZZ_CHECK(cubin.size_bytes == size);
  FUZZ_CHECK(!cubin.entries.empty());
  for (const CubinEntry& entry : cubin.entries) {
    FUZZ_CHECK(cubin.find(entry.name) == &entry);  // names are unique
    FUZZ_CHECK(entry.code_bytes <= size);
    for (const char c : entry.name) FUZZ_CHECK(c > 0x20 && c < 0x7f);
    if (entry.max_threads) FUZZ_CHECK(entry.threads() >= 1 && entry.threads() <= 1024);
    for (const CubinParam& param : entry.params) {
      FUZZ_CHECK(param.offset + param.size <= entry.param_bytes);
    }
  }
}

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto cubin = cubist::parse_cubin({data, size}, "fuzz.cubin");
  if (!cubin) {
    FUZZ_CHECK(cubin.error().code() == cubist::StatusCode::kIntegrity);
    return 0;
  }
  cubist::check_promises(*cubin, size);
  for (const std::string& name : {cubin->entries[0].name, std::string("other")}) {
    cubist::KernelRecord record;
    record.name = name;
    for (const auto& difference :
         cubist::cross_check(*cubin, record, cubist::ParamLayout::kTrtllmGenFmha1280)) {
      FUZZ_CHECK(!cubist::to_string(difference).empty());
    }
  }
  return 0;
}
