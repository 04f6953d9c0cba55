#include <cstdlib>
#include <new>

#include "bench.h"

namespace {

thread_local std::uint64_t g_count = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++g_count;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace cubist::bench {

std::uint64_t allocations() { return g_count; }

}  // namespace cubist::bench
