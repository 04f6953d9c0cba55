#include "cubin/smem_size_entry.h"

#include "cubin/cubin_file.h"
#include "support/byte_writer.h"
#include "support/catch.h"
#include "support/synthetic_cubin.h"

namespace cubist {
namespace {

test::CubinImage image_saying(std::uint32_t smem) {
  test::SyntheticKernel kernel;
  kernel.smem = smem;
  return test::make_cubin({.kernels = {kernel}});
}

std::vector<std::uint8_t> code_saying(std::uint32_t smem) {
  const test::CubinImage image = image_saying(smem);
  const auto at =
      image.bytes.begin() + static_cast<std::ptrdiff_t>(image.bytes_of(".text.kernelGetSmemSize"));
  return {at, at + 256};
}

TEST_CASE("the constant is read out of both ways to move it") {
  std::vector<std::uint8_t> code = code_saying(230'672);
  CHECK(smem_size_constant(code) == 230'672u);
  const std::uint8_t integer_move[] = {0x02, 0x78, 0x05, 0x00, 1, 0,    3,    0,
                                       0x00, 0x0f, 0,    0,    0, 0xca, 0x0f, 0};
  std::copy(std::begin(integer_move), std::end(integer_move), code.begin() + 48);
  CHECK(smem_size_constant(code) == 0x30001u);
}

TEST_CASE("code that differs in any byte outside the constant is not understood") {
  const std::vector<std::uint8_t> good = code_saying(65'536);
  for (std::size_t i = 0; i < good.size(); ++i) {
    CAPTURE(i);
    std::vector<std::uint8_t> code = good;
    code[i] ^= 1;
    CHECK(smem_size_constant(code).has_value() == (i >= 52 && i < 56));
  }
}

TEST_CASE("code of another length is not understood") {
  std::vector<std::uint8_t> code = code_saying(65'536);
  code.resize(240);
  CHECK_FALSE(smem_size_constant(code));
  CHECK_FALSE(smem_size_constant({}));
}

TEST_CASE("a size entry with other code leaves the kernel's shared memory unknown") {
  test::CubinImage image = image_saying(65'536);
  image.bytes[image.bytes_of(".text.kernelGetSmemSize")] ^= 1;
  auto cubin = parse_cubin(image.bytes, "x.cubin");
  REQUIRE(cubin);
  CHECK_FALSE(cubin->find("kernel")->dynamic_smem);
  CHECK(cubin->kernels().size() == 1);
}

}  // namespace
}  // namespace cubist
