#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/kernel_record.h"
#include "model/verified_cubin.h"

namespace cubist::test {

/// Bytes that begin like an ELF file and are otherwise random; the same for the same seed.
inline std::vector<std::uint8_t> synthetic_bytes(std::uint32_t seed, std::size_t size) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const std::uint8_t magic[] = {0x7f, 'E', 'L', 'F'};
  for (std::size_t i = 0; i < size && i < sizeof(magic); ++i) bytes[i] = magic[i];
  return bytes;
}

inline KernelRecord record_of(const std::string& name, const std::vector<std::uint8_t>& bytes) {
  KernelRecord record;
  record.name = name;
  record.path = name + ".cubin";
  record.sha256 = sha256(bytes);
  record.size_bytes = bytes.size();
  return record;
}

inline VerifiedCubin verified(const std::vector<std::uint8_t>& bytes) {
  return VerifiedCubin::verify(bytes, sha256(bytes), bytes.size(), "synthetic").value();
}

}  // namespace cubist::test
