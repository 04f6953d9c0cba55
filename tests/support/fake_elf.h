#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cubist::test {

/// What the stand-in reads from a cubin: the SM number in its ELF flags and whether a function
/// symbol of that name exists. Trusts the image (the product checks it first, which is what is
/// tested).
std::optional<int> fake_elf_sm(const void* image);
bool fake_elf_has_function(const void* image, const std::string& name);
/// Bytes of the function's parameter block, where the image says so (.nv.info of the function).
std::optional<std::size_t> fake_elf_param_bytes(const void* image, const std::string& name);

}  // namespace cubist::test
