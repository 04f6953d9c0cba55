#include "refusal.h"
#include "support/byte_writer.h"
#include "support/synthetic_cubin.h"

// Files whose ELF container is sound and whose kernels' records lie.

namespace cubist {
namespace {

using test::CubinImage;
using test::patch;

using Liar = test::Liar<CubinImage>;

const std::string kInfo = ".nv.info.kernel";
constexpr std::size_t kSize = 32, kSectionInfo = 44;  // in a section header

CubinImage good() {
  test::SyntheticKernel kernel;
  kernel.params = {8, 128, 64};
  kernel.cluster = std::array<std::uint32_t, 3>{2, 1, 1};
  kernel.two_cta_mma = false;
  return test::make_cubin({.kernels = {kernel}});
}

std::size_t record(const CubinImage& image, std::uint8_t id) { return image.record_of(kInfo, id); }

void check_refused(const std::vector<Liar>& liars) { test::check_refused(good(), liars); }

TEST_CASE("broken records are refused and named") {
  check_refused({
      {"an unknown format", [](CubinImage& c) { c.bytes[record(c, 0x1b)] = 5; },
       "unknown format 5"},
      {"format 0", [](CubinImage& c) { c.bytes[record(c, 0x1b)] = 0; }, "unknown format 0"},
      {"half a record header",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.header_of(kInfo) + kSize, 8 + 2); },
       "ends inside a record at its byte 8"},
      {"a payload past the section",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x0a) + 2, 12); },
       "payload of record 0x0a"},
      {"thread counts of 8 bytes",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x05) + 2, 8); },
       "record 0x05 has 8 bytes, not 12"},
      {"a parameter of 8 bytes",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x17) + 2, 8); },
       "record 0x17 has 8 bytes, not 12"},
      {"a parameter's place of 4 bytes",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x0a) + 2, 4); },
       "record 0x0a has 4 bytes, not 8"},
      {"the parameters' size as one byte", [](CubinImage& c) { c.bytes[record(c, 0x19)] = 2; },
       "record 0x19 has format 2, not 3"},
      {"a broken .nv.compat", [](CubinImage& c) { c.bytes[c.record_of(".nv.compat", 0x02)] = 9; },
       ".nv.compat has a record of unknown format 9"},
      {"a broken .nv.info",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, c.record_of(".nv.info", 0x2f) + 2, 100); },
       ".nv.info ends inside the payload"},
      {"registers of 4 bytes",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, c.record_of(".nv.info", 0x2f) + 2, 4); },
       "record 0x2f of .nv.info has 4 bytes"},
      {"registers of a symbol that is not there",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.record_of(".nv.info", 0x2f) + 4, 2); },
       "registers of symbol 2 of 2"},
  });
}

TEST_CASE("records that contradict each other or hardware are refused and named") {
  check_refused({
      {"no threads", [](CubinImage& c) { patch<std::uint32_t>(c.bytes, record(c, 0x05) + 4, 0); },
       "says 0 x 1 x 1"},
      {"too many threads",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, record(c, 0x05) + 4, 1025); },
       "says 1025 x 1 x 1, which is not 1 to 1024"},
      {"threads whose product overflows",
       [](CubinImage& c) {
         for (const std::size_t d : {4, 8, 12})
           patch<std::uint32_t>(c.bytes, record(c, 0x05) + d, 1u << 31);
       },
       "which is not 1 to 1024"},
      {"threads whose product is too large",
       [](CubinImage& c) {
         for (const std::size_t d : {4, 8, 12})
           patch<std::uint32_t>(c.bytes, record(c, 0x05) + d, 1024);
       },
       "which is not 1 to 1024"},
      {"an empty cluster",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, record(c, 0x3d) + 8, 0); },
       "says 2 x 0 x 1"},
      {"thread counts twice", [](CubinImage& c) { c.bytes[record(c, 0x3d) + 1] = 0x05; },
       "record 0x05 is there twice"},
      {"one-CTA and two-CTA", [](CubinImage& c) { c.bytes[record(c, 0x3e) + 1] = 0x52; },
       "one-CTA and for two-CTA"},
      {"the parameters' size twice", [](CubinImage& c) { c.bytes[record(c, 0x1b) + 1] = 0x19; },
       "size is there twice"},
      {"parameters of two sizes",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x19) + 2, 208); },
       "208 bytes by one record and 200 by another"},
      {"a parameter past all parameters",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, record(c, 0x17) + 12, 0xffffffff); },
       "parameter 0 (16383 bytes at 0) runs past the 200 bytes"},
      {"a parameter that begins past all parameters",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x17) + 32 + 10, 201); },
       "parameter 2 (64 bytes at 201) runs past"},
      {"parameters that overlap",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x17) + 16 + 10, 4); },
       "parameters 0 and 1 overlap"},
      {"one parameter twice",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x17) + 16 + 8, 0); },
       "parameter 1 is missing or there twice"},
      {"a parameter missing",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, record(c, 0x17) + 32 + 8, 9); },
       "parameter 2 is missing"},
  });
}

TEST_CASE("records of another kernel or of none are refused and named") {
  check_refused({
      {"no records",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(kInfo) + 4, 1); },
       "has no .nv.info section"},
      {"records of a section that is not there",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(kInfo) + kSectionInfo, 500); },
       ".nv.info.kernel belongs to section 500"},
      {"records of another kernel's name",
       [](CubinImage& c) {
         const std::string names(c.bytes.begin(), c.bytes.end());
         c.bytes[names.find(".nv.info.kernel") + 14] = 'X';
       },
       "kernel 'kernel' uses section .nv.info.kerneX"},
      {"shared memory of another kernel's name",
       [](CubinImage& c) {
         const std::string names(c.bytes.begin(), c.bytes.end());
         c.bytes[names.find(".nv.shared.kernel") + 16] = 'X';
       },
       "kernel 'kernel' uses section .nv.shared.kerneX"},
      {"less shared memory than is reserved",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".nv.shared.kernel") + kSize, 1023);
       },
       "has 1023 bytes, fewer than the 1024"},
  });
}

TEST_CASE("two record sections of one kernel are refused") {
  test::SyntheticKernel first, second;
  first.name = "first";
  second.name = "other";
  CubinImage image = test::make_cubin({.kernels = {first, second}});
  const auto text = static_cast<std::uint32_t>(image.index_of(".text.first"));
  patch<std::uint32_t>(image.bytes, image.header_of(".nv.info.other") + kSectionInfo, text);
  const auto cubin = parse_cubin(image.bytes, "x.cubin");
  REQUIRE_FALSE(cubin);
  CHECK_THAT(cubin.error().message(),
             Catch::Contains(".nv.info.first and .nv.info.other belong to the same kernel"));
}

TEST_CASE("registers counted twice are refused") {
  test::SyntheticKernel first, second;
  second.name = "other";
  CubinImage image = test::make_cubin({.kernels = {first, second}});
  patch<std::uint32_t>(image.bytes, image.bytes_of(".nv.info") + 12 + 4, 1);
  const auto cubin = parse_cubin(image.bytes, "x.cubin");
  REQUIRE_FALSE(cubin);
  CHECK_THAT(cubin.error().message(), Catch::Contains("the registers of symbol 1 twice"));
}

}  // namespace
}  // namespace cubist
