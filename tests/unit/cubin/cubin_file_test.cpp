#include "cubin/cubin_file.h"

#include "support/byte_writer.h"
#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist {
namespace {

using test::make_cubin;
using test::SyntheticCubin;
using test::SyntheticKernel;
using Dim3 = std::array<std::uint32_t, 3>;

CubinFile parse(const SyntheticCubin& cubin) {
  const test::CubinImage image = make_cubin(cubin);
  auto parsed = parse_cubin(image.bytes, "x.cubin");
  if (!parsed) FAIL(parsed.error().message());
  CHECK(parsed->size_bytes == image.bytes.size());
  return std::move(*parsed);
}

TEST_CASE("a kernel's launch facts are read") {
  SyntheticKernel kernel;
  kernel.name = "fmha";
  kernel.params = {8, 1272};
  kernel.threads = {384, 1, 1};
  kernel.registers = 168;
  kernel.smem = 202'752;
  kernel.cluster = Dim3{2, 1, 1};
  kernel.two_cta_mma = true;
  kernel.static_smem = 48;
  const CubinFile cubin = parse({.kernels = {kernel}});

  REQUIRE(cubin.kernels().size() == 1);
  const CubinEntry& entry = *cubin.kernels()[0];
  CHECK(entry.name == "fmha");
  CHECK(entry.code_bytes == 512);
  CHECK(entry.param_bytes == 1280);
  CHECK(entry.params == std::vector<CubinParam>{{0, 0, 8}, {1, 8, 1272}});
  CHECK(entry.max_threads == Dim3{384, 1, 1});
  CHECK(entry.threads() == 384);
  CHECK(entry.registers == 168u);
  CHECK(entry.cluster == Dim3{2, 1, 1});
  CHECK(entry.two_cta_mma == true);
  CHECK(entry.static_smem == 48);
  CHECK(entry.dynamic_smem == 202'752u);
  CHECK_FALSE(entry.is_smem_size_entry);
}

TEST_CASE("the entry that tells the shared memory is listed, but is no kernel") {
  SyntheticKernel kernel;
  kernel.smem = 4096;
  const CubinFile cubin = parse({.kernels = {kernel}});
  REQUIRE(cubin.entries.size() == 2);
  const CubinEntry* helper = cubin.find("kernelGetSmemSize");
  REQUIRE(helper != nullptr);
  CHECK(helper->is_smem_size_entry);
  CHECK(helper->code_bytes == 256);
  CHECK(helper->param_bytes == 8);
  CHECK_FALSE(helper->max_threads);
  CHECK_FALSE(helper->dynamic_smem);
}

TEST_CASE("a kernel whose name merely ends in GetSmemSize is a kernel") {
  SyntheticKernel kernel;
  kernel.name = "aloneGetSmemSize";
  const CubinFile cubin = parse({.kernels = {kernel}});
  CHECK(cubin.kernels().size() == 1);
}

TEST_CASE("what a file does not say stays empty") {
  SyntheticKernel kernel;
  kernel.params = {};
  kernel.threads = {0, 0, 0};
  const CubinFile cubin = parse({.kernels = {kernel}});
  const CubinEntry& entry = cubin.entries[0];
  CHECK(entry.param_bytes == 0);
  CHECK(entry.params.empty());
  CHECK_FALSE(entry.max_threads);
  CHECK(entry.threads() == 0);
  CHECK_FALSE(entry.cluster);
  CHECK_FALSE(entry.two_cta_mma);
  CHECK_FALSE(entry.dynamic_smem);
  CHECK(cubin.find("other") == nullptr);
}

TEST_CASE("parameters of 16 KiB and more are read") {
  SyntheticKernel kernel;
  kernel.params = {17'472, 8};
  const CubinFile cubin = parse({.kernels = {kernel}});
  CHECK(cubin.entries[0].params == std::vector<CubinParam>{{0, 0, 17'472}, {1, 17'472, 8}});
  CHECK(cubin.entries[0].param_bytes == 17'480);
}

TEST_CASE("several kernels of one file keep apart") {
  SyntheticKernel first;
  first.name = "first";
  first.threads = {256, 2, 1};
  SyntheticKernel second;
  second.name = "second";
  second.params = {1088};
  second.registers = 40;
  second.smem = 65'536;
  const CubinFile cubin = parse({.kernels = {first, second}});
  REQUIRE(cubin.kernels().size() == 2);
  CHECK(cubin.find("first")->threads() == 512);
  CHECK_FALSE(cubin.find("first")->dynamic_smem);
  CHECK(cubin.find("second")->param_bytes == 1088);
  CHECK(cubin.find("second")->registers == 40u);
  CHECK(cubin.find("second")->dynamic_smem == 65'536u);
}

TEST_CASE("below sm_90 no shared memory is reserved for the system") {
  SyntheticKernel kernel;
  kernel.static_smem = 1200;
  CHECK(parse({.arch = {80, SmArch::Kind::kPortable}, .abi_version = 7, .kernels = {kernel}})
            .entries[0]
            .static_smem == 1200);
  CHECK(parse({.arch = {90, SmArch::Kind::kSpecific}, .abi_version = 7, .kernels = {kernel}})
            .entries[0]
            .static_smem == 1200);
}

TEST_CASE("a file without segments is read") {
  test::CubinImage image = make_cubin();
  test::patch<std::uint64_t>(image.bytes, 32, 0);
  test::patch<std::uint16_t>(image.bytes, 56, 0);
  CHECK(parse_cubin(image.bytes, "x.cubin"));
}

}  // namespace
}  // namespace cubist
