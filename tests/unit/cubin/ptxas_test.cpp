#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "cubin/cubin_file.h"
#include "support/catch.h"
#include "support/scratch.h"

// The reader against files of the real assembler. Skipped (exit code 77) where there is none.

namespace cubist {
namespace {

struct Target {
  const char* arch;
  const char* ptx_version;
  bool clusters;
};

// The oldest PTX version that knows the architecture.
constexpr Target kTargets[] = {
    {"sm_75", "7.0", false}, {"sm_80", "7.0", false},  {"sm_86", "7.1", false},
    {"sm_89", "7.8", false}, {"sm_90", "8.0", true},   {"sm_90a", "8.0", true},
    {"sm_100", "8.6", true}, {"sm_100a", "8.6", true}, {"sm_100f", "8.8", true},
    {"sm_103", "8.8", true}, {"sm_103a", "8.8", true}, {"sm_103f", "8.8", true},
    {"sm_120", "8.7", true}, {"sm_120a", "8.7", true}, {"sm_120f", "8.8", true},
};

std::string ptx_for(const Target& target) {
  return fmt::format(R"(.version {}
.target {}
.address_size 64
.visible .entry probe(.param .u64 out, .param .align 8 .b8 block[264], .param .u32 index)
.maxntid 64, 6, 1
{}
{{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 buffer[1200];
  mov.u32 %r1, %tid.x;
  mov.u64 %rd1, buffer;
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  st.shared.u32 [%rd2], %r1;
  bar.sync 0;
  ld.param.u32 %r2, [index];
  mad.wide.u32 %rd2, %r2, 4, %rd1;
  ld.shared.u32 %r3, [%rd2];
  ld.param.u64 %rd3, [out];
  st.global.u32 [%rd3], %r3;
  ret;
}}
.visible .entry empty() {{ ret; }}
)",
                     target.ptx_version, target.arch,
                     target.clusters ? ".reqnctapercluster 2, 1, 1" : "");
}

/// The assembler's output; empty if it does not know the architecture.
std::vector<std::uint8_t> assemble(const test::Scratch& scratch, const Target& target) {
  const std::string ptx = scratch / "in.ptx";
  const std::string cubin = scratch / "out.cubin";
  REQUIRE(write_file_atomically(ptx, std::string_view(ptx_for(target))));
  const std::string command = fmt::format("'{}' -arch {} '{}' -o '{}' >'{}' 2>&1", CUBIST_PTXAS,
                                          target.arch, ptx, cubin, scratch / "log");
  const bool worked = std::system(command.c_str()) == 0;
  if (!worked) {
    const std::string log = read_text_file(scratch / "log", 1 << 20).value();
    INFO(log);
    // Anything but "this release does not know that architecture" is a fault of the test.
    REQUIRE((log.find("gpu-name") != std::string::npos ||
             log.find("Unsupported .version") != std::string::npos));
    return {};
  }
  return read_file(cubin, 1 << 24).value();
}

void check(const CubinFile& cubin, const Target& target) {
  CHECK(arch_text(cubin) == target.arch);
  CHECK_FALSE(cubin.tool_release.empty());
  REQUIRE(cubin.kernels().size() == 2);
  const CubinEntry* probe = cubin.find("probe");
  REQUIRE(probe != nullptr);
  CHECK(probe->params == std::vector<CubinParam>{{0, 0, 8}, {1, 8, 264}, {2, 272, 4}});
  CHECK(probe->param_bytes == 276);
  CHECK(probe->max_threads == std::array<std::uint32_t, 3>{64, 6, 1});
  CHECK(probe->static_smem == 1200);
  CHECK(probe->registers.value_or(0) > 0);
  CHECK(probe->cluster.has_value() == target.clusters);
  CHECK_FALSE(probe->dynamic_smem);
  CHECK(cubin.find("empty")->param_bytes == 0);
}

TEST_CASE("what ptxas assembles is read back for every architecture it knows") {
  if (std::string_view(CUBIST_PTXAS).empty()) {
    std::puts("skipped: no ptxas");
    std::exit(77);
  }
  const test::Scratch scratch;
  int known = 0;
  for (const Target& target : kTargets) {
    CAPTURE(target.arch);
    const std::vector<std::uint8_t> bytes = assemble(scratch, target);
    if (bytes.empty()) continue;
    ++known;
    const auto cubin = parse_cubin(bytes, target.arch);
    if (!cubin) FAIL(cubin.error().message());
    check(*cubin, target);
  }
  CHECK(known > 0);
}

}  // namespace
}  // namespace cubist
