#include "cubin/smem_size_entry.h"

#include <algorithm>
#include <array>

#include "base/byte_reader.h"

// A GetSmemSize entry is 16 instructions of 16 bytes: load the stack pointer, the memory descriptor
// and the pointer argument; move a constant to a register; store it; exit; a branch to itself and
// padding behind that. The constant is the 4 bytes at 52, inside the move at 48, which assemblers
// write in one of two ways (as a pair of half-floats where it is a valid one, else as an integer).

namespace cubist {
namespace {

constexpr std::size_t kInstructionBytes = 16;
constexpr std::size_t kNumInstructions = 16;
constexpr std::size_t kMove = 3;           // index of the move
constexpr std::size_t kConstantBytes = 4;  // at byte 4 of the move

using Instruction = std::array<std::uint8_t, kInstructionBytes>;

constexpr Instruction kMoveHalfPair = {0x31, 0x74, 0x05, 0xff, 0x00, 0x00, 0x00, 0x00,
                                       0xff, 0x01, 0x00, 0x00, 0x00, 0xca, 0x0f, 0x00};
constexpr Instruction kMoveInteger = {0x02, 0x78, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00,
                                      0x00, 0x0f, 0x00, 0x00, 0x00, 0xca, 0x0f, 0x00};
constexpr std::array<Instruction, 8> kBody = {{
    {0x82, 0x7b, 0x01, 0xff, 0x00, 0xdf, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0xf0, 0x0f,
     0x00},
    {0x82, 0x7b, 0x02, 0xff, 0x00, 0xe0, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x22, 0x0e,
     0x00},
    {0xac, 0x77, 0x04, 0xff, 0x00, 0x6b, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x08, 0x00, 0x22, 0x0e,
     0x00},
    {},  // the move
    {0x86, 0x79, 0x00, 0x02, 0x05, 0x00, 0x00, 0x00, 0x04, 0x19, 0x10, 0x0c, 0x00, 0xe2, 0x1f,
     0x00},
    {0x4d, 0x79, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x03, 0x00, 0xea, 0x0f,
     0x00},
    {0x47, 0x79, 0xfc, 0x00, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0x83, 0x03, 0x00, 0xc0, 0x0f,
     0x00},
    {0x18, 0x79, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0x0f,
     0x00},  // no operation, to the end
}};

bool same_but_constant(std::span<const std::uint8_t> code, const Instruction& move) {
  return std::equal(code.begin(), code.begin() + kConstantBytes, move.begin()) &&
         std::equal(code.begin() + 2 * kConstantBytes, code.end(),
                    move.begin() + 2 * kConstantBytes);
}

}  // namespace

std::optional<std::uint32_t> smem_size_constant(std::span<const std::uint8_t> code) {
  if (code.size() != kNumInstructions * kInstructionBytes) return std::nullopt;
  for (std::size_t i = 0; i < kNumInstructions; ++i) {
    const auto found = code.subspan(i * kInstructionBytes, kInstructionBytes);
    if (i == kMove) {
      if (!same_but_constant(found, kMoveHalfPair) && !same_but_constant(found, kMoveInteger)) {
        return std::nullopt;
      }
      continue;
    }
    const Instruction& expected = kBody[std::min(i, kBody.size() - 1)];
    if (!std::equal(found.begin(), found.end(), expected.begin())) return std::nullopt;
  }
  return ByteReader(code).read<std::uint32_t>(kMove * kInstructionBytes + kConstantBytes);
}

}  // namespace cubist
