#include "base/prefault.h"

#include <sys/mman.h>

#include <cstdint>

namespace cubist {
namespace {

// <sys/mman.h> of older C libraries lacks the name.
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE
constexpr std::uintptr_t kPage = 4096;

}  // namespace

void prefault(void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (begin + bytes) / kPage * kPage;
  if (end <= first) return;
  char* pages = static_cast<char*>(memory) + (first - begin);
  ::madvise(pages, end - first, MADV_HUGEPAGE);  // fewer and larger ones, where there are any
  ::madvise(pages, end - first, kPopulateWrite);
}

}  // namespace cubist
